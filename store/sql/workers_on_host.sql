-- Workers on host $1, other than $2, that have not signed off and may still hold leases.
-- Clock: now().
-- Index: none needed; a handful of rows.
select worker_id as id, host, pid, pid_started, roles
from workers
where host = $1 and worker_id <> $2 and stopped_at is null
    and (alive_until > now() or exists (select from leases l where l.worker_id = workers.worker_id));
