//! The object model that a FED file describes.

use crate::handle::{AttributeHandle, InteractionClassHandle, ObjectClassHandle, ParameterHandle};

/// How values travel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Transport {
    /// All of them.
    Reliable,
    /// Some may be lost.
    BestEffort,
}

/// In which order values are delivered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Order {
    /// As they arrive.
    Receive,
    /// By their time stamps.
    Timestamp,
}

/// A routing space.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Space {
    /// Its name.
    pub name: String,
    /// The names of its dimensions.
    pub dimensions: Vec<String>,
}

/// An attribute or a parameter: a named member of a class.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Member {
    /// Its name.
    pub name: String,
    /// Its number, unique in the model.
    pub handle: u32,
}

/// A class of objects or of interactions.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Class {
    /// Its own name, without its ancestors'.
    pub name: String,
    /// The class above, as an index into the same list; none for the root.
    pub parent: Option<usize>,
    /// What it declares itself; what it inherits is with its ancestors.
    pub members: Vec<Member>,
}

/// How an attribute, or an interaction as a whole, travels.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Delivery {
    /// How values travel.
    pub transport: Transport,
    /// In which order they are delivered.
    pub order: Order,
    /// The routing space, as an index into the model's list.
    pub space: Option<usize>,
}

/// Classes in one tree; a class's handle is its index plus one.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ClassTree {
    /// Parents come before their children.
    pub classes: Vec<Class>,
}

impl ClassTree {
    /// The index for a handle.
    pub fn index(&self, handle: u32) -> Option<usize> {
        let index = (handle as usize).checked_sub(1)?;
        (index < self.classes.len()).then_some(index)
    }

    /// The class and its ancestors, nearest first.
    pub fn lineage(&self, index: usize) -> impl Iterator<Item = usize> + '_ {
        std::iter::successors(Some(index), |&i| self.classes[i].parent)
    }

    /// Finds a class by its dotted path; the root's name may be left out.
    pub fn find(&self, path: &str) -> Option<usize> {
        let root = self.classes.iter().position(|c| c.parent.is_none())?;
        let mut at = root;
        for (depth, name) in path.split('.').enumerate() {
            if depth == 0 && name == self.classes[root].name {
                continue;
            }
            at = self.child(at, name)?;
        }
        Some(at)
    }

    /// The direct child of that name.
    pub fn child(&self, parent: usize, name: &str) -> Option<usize> {
        self.classes
            .iter()
            .position(|c| c.parent == Some(parent) && c.name == name)
    }

    /// A member by name, declared by the class or inherited.
    pub fn member(&self, class: usize, name: &str) -> Option<u32> {
        self.members(class)
            .find(|m| m.name == name)
            .map(|m| m.handle)
    }

    /// Whether the class has that member, its own or inherited.
    pub fn has(&self, class: usize, member: u32) -> bool {
        self.members(class).any(|m| m.handle == member)
    }

    /// All members of a class, its own first.
    pub fn members(&self, class: usize) -> impl Iterator<Item = &Member> {
        self.lineage(class).flat_map(|i| &self.classes[i].members)
    }
}

/// Everything a FED file says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ObjectModel {
    /// The name after `Federation`.
    pub federation: String,
    /// The word after `FEDversion`.
    pub version: String,
    /// The routing spaces.
    pub spaces: Vec<Space>,
    /// The object classes; their members are attributes.
    pub objects: ClassTree,
    /// How each attribute travels, by its handle minus one.
    pub attribute_delivery: Vec<Delivery>,
    /// The interaction classes; their members are parameters.
    pub interactions: ClassTree,
    /// How each interaction class travels, by its index.
    pub interaction_delivery: Vec<Delivery>,
}

impl ObjectModel {
    /// getObjectClassHandle.
    pub fn object_class(&self, path: &str) -> Option<ObjectClassHandle> {
        self.objects
            .find(path)
            .map(|i| ObjectClassHandle(number(i)))
    }

    /// getAttributeHandle.
    pub fn attribute(&self, class: ObjectClassHandle, name: &str) -> Option<AttributeHandle> {
        let class = self.objects.index(class.0)?;
        self.objects.member(class, name).map(AttributeHandle)
    }

    /// getInteractionClassHandle.
    pub fn interaction_class(&self, path: &str) -> Option<InteractionClassHandle> {
        let index = self.interactions.find(path)?;
        Some(InteractionClassHandle(number(index)))
    }

    /// getParameterHandle.
    pub fn parameter(&self, class: InteractionClassHandle, name: &str) -> Option<ParameterHandle> {
        let class = self.interactions.index(class.0)?;
        self.interactions.member(class, name).map(ParameterHandle)
    }
}

/// The handle for an index.
pub fn number(index: usize) -> u32 {
    index as u32 + 1
}
