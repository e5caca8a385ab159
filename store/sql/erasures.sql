-- Erasures of tenants, the newest first, up to $3 of them: of tenant $2 unless it is empty,
-- and only $1 unless it is null.
-- Index: none; a handful of rows.
select erasure_id as id, tenant, reason, asked_by as by, asked_at, erased, left_open as open, updated_at, finished_at
from erasures
where ($1::uuid is null or erasure_id = $1) and ($2::text = '' or tenant = $2)
order by asked_at desc, erasure_id desc
limit $3;
