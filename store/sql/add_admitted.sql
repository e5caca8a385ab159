-- Remember which jobs a gate has admitted, and where they are in the ready list.
-- Clock: clock_timestamp(), which is later than the wait for the admitter's lock.
-- Locks: the new rows. The caller is the one who admits.
-- Index: admitted_pkey.
insert into admitted (gate, job_id, job_type, urgency, position, admitted_at)
select *, clock_timestamp() from unnest($1::text[], $2::uuid[], $3::text[], $4::smallint[], $5::timestamptz[])
on conflict (gate, job_id) do update
set urgency = excluded.urgency, position = excluded.position, admitted_at = excluded.admitted_at;
