-- Make the table that only a closed ledger has, for one row: for which export it was closed, and
-- why. Of an import also the checksum of the whole file, and how many bytes and rows of it are
-- in. The program makes it and not a migration, so that no open ledger has it.
-- Clock: now(), as the default.
-- Locks: none that others meet.
-- Index: none.
create table ledger_closure (
    export_id text primary key,
    reason text not null check (reason in ('exported', 'importing')),
    closed_at timestamptz not null default now(),
    sha256 text not null default '',
    bytes bigint not null default 0,
    rows bigint not null default 0
);
