-- Deliveries of webhooks, which are jobs of type $1, that have died within $2.
-- Clock: now().
-- Index: dead_letters_group.
select count(*) as deliveries, now() - max(dead_at) as ago
from dead_letters
where job_type = $1::text and dead_at > now() - $2::interval
having count(*) > 0;
