-- Keep ends that could not be announced: jobs $1 in states $2 since $3, for the reason $4. If
-- $5 is not null, it gives up those that could not be announced for so long.
-- Returns how many it has given up.
-- Clock: now().
-- Locks: the rows that are there already, which nobody else changes. The caller is the one
-- who follows.
-- Index: undelivered_pkey.
with kept as (
    insert into undelivered as u (job_id, state, at, reason)
    select job_id, state::job_state, at, $4::text
    from unnest($1::uuid[], $2::text[], $3::timestamptz[]) as e (job_id, state, at)
    on conflict (job_id, at) do update
    set reason = excluded.reason, tried_at = now(), given_up_at = case when u.since < now() - $5::interval then now() end
    returning given_up_at
)
select count(given_up_at) from kept;
