-- Undo list_by_index.sql for the rest of this transaction.
-- Index: none; a setting.
select set_config('enable_sort', 'on', true);
