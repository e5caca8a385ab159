-- Claim the digests of submissions that must be unique, each for the first submission
-- that has it. A digest is free if nobody has it, if its time is over, or, without a time,
-- if its job has ended or is gone. A job is gone if this statement sees its digest, but not
-- the job: one that was made a moment ago has neither. Otherwise its row stays as it is. unique_keys then says which job
-- each digest belongs to, and the row is locked until the transaction ends. A submission
-- whose job exists claims nothing.
-- Clock: now().
-- Locks: the digests, in their order, before any idempotency key: the caller locks those
-- in later statements. So two transactions cannot deadlock.
-- Index: unique_keys_pkey, jobs_pkey, jobs_idempotency_key.
with wanted as materialized (
    select distinct on (i.digest) i.digest, i.job_id, i.keep_for
    from unnest($1::bytea[], $2::uuid[], $3::interval[], $4::text[], $5::text[]) with ordinality
        as i (digest, job_id, keep_for, tenant, idempotency_key, nth)
    where case
        when (select j.job_id from jobs j where j.job_id = i.job_id) is not null then false
        when i.idempotency_key is null then true
        else (select j.job_id from jobs j where j.tenant = i.tenant and j.idempotency_key = i.idempotency_key) is null
    end
    order by i.digest, i.nth
)
insert into unique_keys as u (digest, job_id, expires_at)
select digest, job_id, now() + keep_for from wanted order by digest
on conflict (digest) do update set job_id = excluded.job_id, expires_at = excluded.expires_at
where case
    when u.expires_at is not null then u.expires_at <= now()
    else coalesce(
        (select j.state in ('succeeded', 'dead', 'canceled') from jobs j where j.job_id = u.job_id),
        (select k.job_id from unique_keys k where k.digest = u.digest) = u.job_id
    )
end;
