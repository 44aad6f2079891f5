#!/usr/bin/env bash
# PostgreSQL over TCP: pgbench read-only and read-write with four clients, and large results; encrypted, too.
# Server and client run as one user, who must not be root.
. "$(dirname "$0")/lib.sh"
PATH=$PATH:$(printf '%s:' /usr/lib/postgresql/*/bin)
need postgres postgresql
need initdb postgresql
need pgbench postgresql-contrib

if [ "$(id -u)" -eq 0 ]; then
    id postgres >/dev/null 2>&1 || { echo "skip $NAME: there is no user postgres"; exit 0; }
    AS=(setpriv --reuid=postgres --regid=postgres --init-groups env HOME="$DIR")
    chown postgres "$DIR"
fi
CLUSTER=$DIR/cluster
SIDE=plain run initdb -D "$CLUSTER" -U bench -A trust --no-sync --locale=C -E UTF8 >"$DIR/initdb.log" 2>&1 ||
    { fail "initdb: $(tail -n 1 "$DIR/initdb.log")"; finish; }
export PGHOST=127.0.0.1 PGUSER=bench PGDATABASE=postgres PGCONNECT_TIMEOUT=10

SSL=off
start_postgres() {
    export PGPORT
    PGPORT=$(free_port)
    serve "$PGPORT" postgres -D "$CLUSTER" -p "$PGPORT" -h 127.0.0.1 -k "$DIR/work" -c fsync=off -c "ssl=$SSL" || return 1
    # It listens before it is ready to answer.
    local try
    for try in {1..100}; do
        pg_isready -q && break
        sleep 0.1
    done
    run pgbench -i -q -s "$(size 1 10)" >/dev/null 2>&1
}

# So many transactions out of so many; and the books must balance.
bench() {
    start_postgres || return 1
    run pgbench -n "$@" >"$DIR/work/out" || return 1
    grep 'actually processed\|failed transactions' "$DIR/work/out" || return 1
    run psql -At -c 'SELECT (SELECT sum(abalance) FROM pgbench_accounts) = coalesce((SELECT sum(delta) FROM pgbench_history), 0),
        (SELECT count(*) FROM pgbench_history)'
}

rows() {
    start_postgres || return 1
    run psql -At -c "COPY (SELECT i, md5(i::text) FROM generate_series(1, $1) i) TO STDOUT" >"$DIR/work/rows" || return 1
    wc -l <"$DIR/work/rows"
    sha "$DIR/work/rows"
    run psql -At -q -c 'CREATE TEMP TABLE t (i int, h text)' -c 'COPY t FROM STDIN' \
        -c "SELECT count(*), md5(string_agg(h, '' ORDER BY i)) FROM t" <"$DIR/work/rows"
}

# The server's key must be its own, and the client must really encrypt.
make_certificate() {
    "${AS[@]}" openssl req -new -x509 -days 2 -nodes -newkey rsa:2048 -subj /CN=bench \
        -out "$CLUSTER/server.crt" -keyout "$CLUSTER/server.key" >"$DIR/openssl.log" 2>&1 &&
        chmod 600 "$CLUSTER/server.key"
}
encrypted() {
    local status SSL=on PGSSLMODE=require
    export PGSSLMODE
    "$@"
    status=$?
    run psql -At -c 'SELECT ssl FROM pg_stat_ssl WHERE pid = pg_backend_pid()'
    return $status
}

TRANSACTIONS=$(size 500 20000)
check "pgbench -S -c 4" fast bench -S -c 4 -j 2 -t "$TRANSACTIONS"
check "pgbench read-write -c 4" fast bench -c 4 -j 2 -t "$(size 200 5000)"
check "pgbench -S -M prepared -c 1" fast bench -S -M prepared -c 1 -t "$TRANSACTIONS"
check "pgbench -C (a connection each)" any bench -S -C -c 2 -t "$(size 50 500)"
check "COPY out and in" fast rows "$(size 100000 2000000)"
if command -v openssl >/dev/null && make_certificate; then
    check "SSL: pgbench -S -c 4" fast encrypted bench -S -c 4 -j 2 -t "$TRANSACTIONS"
    check "SSL: COPY out and in" fast encrypted rows "$(size 50000 2000000)"
else
    echo "skip $NAME SSL: openssl is not installed, or makes no certificate"
fi
finish
