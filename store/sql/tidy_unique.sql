-- Delete up to $2 digests whose time is over, and, of the next $2 digests after $1, those
-- that are free because their jobs have ended. Those of dead jobs stay: a job that is
-- requeued keeps others out again. Returns where to go on, null at the end, and how many
-- it has deleted. One process at a time does this; for the others, it returns null and 0.
-- Clock: now().
-- Locks: an advisory lock of the transaction; digests, skipping locked ones. The deletes
-- check the job again: the digest may belong to another by now.
-- Index: unique_keys_pkey, unique_keys_expires_at, jobs_pkey.
with mine as materialized (
    select pg_try_advisory_xact_lock(4653013) as locked
), over as materialized (
    select digest
    from unique_keys
    where expires_at <= now() and (select locked from mine)
    order by expires_at
    limit $2 for update skip locked
), next as materialized (
    select digest, job_id, expires_at
    from unique_keys
    where digest > $1 and (select locked from mine)
    order by digest
    limit $2
), ended as materialized (
    select u.digest
    from next n
    cross join lateral (
        select k.digest, k.job_id from unique_keys k
        where k.digest = n.digest and k.job_id = n.job_id and k.expires_at is null
        for update skip locked
    ) u
    where n.expires_at is null
        and coalesce((select j.state in ('succeeded', 'canceled') from jobs j where j.job_id = u.job_id), true)
), deleted as (
    delete from unique_keys u
    using (select digest from over union select digest from ended) f
    where u.digest between f.digest and f.digest
    returning u.digest
)
select
    case when (select count(*) from next) = $2 then (select digest from next order by digest desc limit 1) end as after,
    (select count(*) from deleted)::integer as deleted;
