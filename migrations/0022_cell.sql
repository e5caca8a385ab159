-- Which cell the database is, if it is one of several behind a proxy: ids of its jobs end
-- in that number, by which proxies find the database of a job.
--
-- Nothing changes for a database without a row here. Earlier orchestrators do not look.

-- +goose Up
-- One row at most, which never changes: `migrate up` and `serve` write it when
-- database.cell is set for the first time.
create table cell (
    only_row boolean primary key default true check (only_row),
    number   smallint not null check (number between 0 and 255),
    since    timestamptz not null default now()
);

-- +goose Down
drop table cell;
