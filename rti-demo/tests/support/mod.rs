//! An RTI in a thread of its own, and federates that keep what they are told.

#![allow(dead_code)] // each test program uses a part

use rti_demo::federate::{FederateAmbassador, RtiAmbassador};
use rti_demo::handle::{FederateHandle, ObjectClassHandle, ObjectHandle};
use rti_demo::rtig::{Options, Rtig};
use rti_demo::wire::{self, AttributeValues, FrameReader, Notice, Request, Service, PROTOCOL};
use rti_demo::{ExceptionKind, RtiException};
use std::io::Write;
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

/// The name of every federation here.
pub const FEDERATION: &str = "Test";

/// Longer than anything here takes.
pub const LIMIT: Duration = Duration::from_secs(5);

/// Starts an RTI that lives as long as the test program.
pub fn rtig() -> SocketAddr {
    rtig_with(Options::default())
}

/// The same, with options.
pub fn rtig_with(options: Options) -> SocketAddr {
    let mut rtig = Rtig::bind("127.0.0.1:0", options).unwrap();
    let address = rtig.local_addr().unwrap();
    std::thread::spawn(move || rtig.run().unwrap());
    address
}

/// The callbacks in words.
#[derive(Default)]
pub struct Heard(pub Vec<String>);

impl FederateAmbassador for Heard {
    fn discover_object_instance(&mut self, _: ObjectHandle, _: ObjectClassHandle, name: &str) {
        self.0.push(format!("discover {name}"));
    }

    fn reflect_attribute_values(&mut self, _: ObjectHandle, values: &AttributeValues, _: &[u8]) {
        self.0.push(format!("reflect {} bytes", values[0].1.len()));
    }

    fn remove_object_instance(&mut self, _: ObjectHandle, _: &[u8]) {
        self.0.push("remove".into());
    }

    fn federate_lost(&mut self, _: FederateHandle, name: &str, reason: &str) {
        self.0.push(format!("lost {name}: {reason}"));
    }
}

/// A federate of the game's object model.
pub struct Federate {
    pub rti: RtiAmbassador,
    pub heard: Heard,
    pub class: ObjectClassHandle,
    pub message: rti_demo::handle::AttributeHandle,
}

impl Federate {
    /// Joins, and publishes and subscribes to the message.
    pub fn join(address: SocketAddr, name: &str) -> Self {
        let mut rti = RtiAmbassador::connect(address).unwrap();
        match rti.create_federation_execution_from(FEDERATION, rti_demo::game::FED) {
            Err(e) if e.kind == ExceptionKind::FederationExecutionAlreadyExists => {}
            other => other.unwrap(),
        }
        rti.join_federation_execution(name, FEDERATION).unwrap();
        let class = rti.get_object_class_handle("Recorder").unwrap();
        let message = rti.get_attribute_handle(class, "Message").unwrap();
        rti.publish_object_class_attributes(class, &[message])
            .unwrap();
        rti.subscribe_object_class_attributes(class, &[message])
            .unwrap();
        let heard = Heard::default();
        Self {
            rti,
            heard,
            class,
            message,
        }
    }

    /// The next callback in words.
    pub fn next(&mut self) -> String {
        let came = self.rti.evoke_callback(LIMIT, &mut self.heard).unwrap();
        assert!(came, "no callback came");
        self.heard.0.pop().expect("one of those noted")
    }

    /// An exception from the RTI to a service that was only sent.
    pub fn late_exception(&mut self) -> RtiException {
        self.rti
            .evoke_callback(LIMIT, &mut self.heard)
            .expect_err("an exception is due")
    }
}

/// A connection without the library's manners.
pub struct Raw {
    pub stream: TcpStream,
    reader: FrameReader,
    serial: u32,
}

impl Raw {
    /// Connected, and no more.
    pub fn connect(address: SocketAddr) -> Self {
        let stream = TcpStream::connect(address).unwrap();
        stream.set_read_timeout(Some(LIMIT)).unwrap();
        Self {
            stream,
            reader: FrameReader::default(),
            serial: 0,
        }
    }

    /// Has joined.
    pub fn join(address: SocketAddr, name: &str) -> Self {
        let mut raw = Self::connect(address);
        let protocol = PROTOCOL;
        raw.call(Service::Connect { protocol }).unwrap();
        let (federate, federation) = (name.into(), FEDERATION.into());
        let join = Service::JoinFederationExecution {
            federate,
            federation,
        };
        raw.call(join).unwrap();
        raw
    }

    /// The frame of a service.
    pub fn frame(&mut self, service: Service) -> Vec<u8> {
        self.serial += 1;
        let serial = self.serial;
        let mut frame = Vec::new();
        wire::append(&mut frame, &Request { serial, service }).unwrap();
        frame
    }

    /// Sends a service and takes the next answer or refusal.
    pub fn call(&mut self, service: Service) -> Result<u32, RtiException> {
        let frame = self.frame(service);
        self.stream.write_all(&frame).unwrap();
        self.outcome()
    }

    /// The next answer or refusal; callbacks are skipped.
    pub fn outcome(&mut self) -> Result<u32, RtiException> {
        loop {
            while let Some(body) = self.reader.next_frame().unwrap() {
                match wire::decode(body).unwrap() {
                    Notice::Answered { answer, .. } => return Ok(answer),
                    Notice::Refused { exception, .. } => return Err(exception),
                    Notice::Callback { .. } => {}
                }
            }
            assert!(self.fill() > 0, "closed without an answer");
        }
    }

    /// Reads once; 0 at the end.
    pub fn fill(&mut self) -> usize {
        self.reader.fill(&mut self.stream).unwrap()
    }
}
