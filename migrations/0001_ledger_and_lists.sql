-- +goose Up
select 1;
