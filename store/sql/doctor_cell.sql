-- Which cell the database is, if any; and how many of the $1 newest jobs were made in other
-- cells, or in no cell after the database had become one.
-- Clock: none.
-- Index: jobs_pkey, backward.
with newest as (
    select created_at, get_byte(uuid_send(job_id), 6) >> 4 as version, get_byte(uuid_send(job_id), 15) as number
    from jobs
    order by job_id desc
    limit $1
)
select
    is_cell.number,
    count(*) filter (where n.version = 8 and n.number is distinct from is_cell.number) as others,
    count(*) filter (where n.version <> 8 and n.created_at > is_cell.since) as unstamped
from (select (select number from cell) as number, (select since from cell) as since) is_cell
left join newest n on true
group by is_cell.number;
