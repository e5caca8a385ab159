-- Whether a handler has ever declared type $1, or a job has had it. Jobs that are long deleted
-- count.
-- Index: job_types_pkey, tally_totals_pkey; the inbox of the tallies is read whole, and short.
select exists (select from job_types where job_type = $1::text)
    or exists (select from tally_totals where job_type = $1)
    or exists (select from tallies where job_type = $1) as known;
