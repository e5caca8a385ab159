-- How many jobs are dead.
-- Index: dead_letters is read whole.
select count(*) from dead_letters;
