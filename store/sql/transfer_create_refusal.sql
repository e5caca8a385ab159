-- Make the function of the triggers of a closed ledger. It refuses with the trigger's argument,
-- and with the SQLSTATE of a standby, so that programs wait for a database that takes writes.
-- Clock: none.
-- Locks: none that others meet.
-- Index: none.
create function refuse_closed() returns trigger language plpgsql as $$
begin
    raise exception '%', tg_argv[0] using errcode = 'read_only_sql_transaction';
end $$;
