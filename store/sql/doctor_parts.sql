-- Triggers and indexes of the schema that are missing or do not work. Without them,
-- forbidden changes are possible, or every statement is slow.
-- Index: none; the catalogs of the schema.
select kind, name, on_table
from (values
    ('trigger', 'jobs_legal_birth', 'jobs'),
    ('trigger', 'jobs_legal_transition', 'jobs'),
    ('trigger', 'dead_letters_described', 'dead_letters'),
    ('trigger', 'timers_described', 'timers'),
    ('index', 'admitted_pkey', 'admitted'),
    ('index', 'attempt_logs_pkey', 'attempt_logs'),
    ('index', 'dead_letters_dead_at', 'dead_letters'),
    ('index', 'dead_letters_pkey', 'dead_letters'),
    ('index', 'expiries_expires_at', 'expiries'),
    ('index', 'expiries_pkey', 'expiries'),
    ('index', 'job_types_pkey', 'job_types'),
    ('index', 'jobs_idempotency_key', 'jobs'),
    ('index', 'jobs_pkey', 'jobs'),
    ('index', 'jobs_tenant', 'jobs'),
    ('index', 'jobs_type', 'jobs'),
    ('index', 'leases_pkey', 'leases'),
    ('index', 'limits_pkey', 'limits'),
    ('index', 'parked_order', 'parked'),
    ('index', 'parked_pkey', 'parked'),
    ('index', 'pauses_pkey', 'pauses'),
    ('index', 'ready_pkey', 'ready'),
    ('index', 'ready_turn', 'ready'),
    ('index', 'slots_pkey', 'slots'),
    ('index', 'slots_wake_at', 'slots'),
    ('index', 'tally_attempts_pkey', 'tally_attempts'),
    ('index', 'tally_slots_pkey', 'tally_slots'),
    ('index', 'tally_totals_pkey', 'tally_totals'),
    ('index', 'tally_workers_pkey', 'tally_workers'),
    ('index', 'timers_pkey', 'timers'),
    ('index', 'timers_run_at', 'timers'),
    ('index', 'turns_pkey', 'turns'),
    ('index', 'type_owners_pkey', 'type_owners'),
    ('index', 'unique_keys_expires_at', 'unique_keys'),
    ('index', 'unique_keys_pkey', 'unique_keys'),
    ('index', 'unsuccessful_attempts_pkey', 'unsuccessful_attempts'),
    ('index', 'workers_pkey', 'workers')
) as needed (kind, name, on_table)
where not exists (
        select from pg_trigger t
        where needed.kind = 'trigger' and t.tgrelid = to_regclass(needed.on_table) and t.tgname = needed.name
            and t.tgenabled in ('O', 'A')
    )
    and not exists (
        select from pg_index i
        where needed.kind = 'index' and i.indrelid = to_regclass(needed.on_table)
            and i.indexrelid = to_regclass(needed.name) and i.indisvalid
    )
order by kind desc, on_table, name;
