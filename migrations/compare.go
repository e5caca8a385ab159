package migrations

import (
	"context"
	"database/sql"
	"fmt"
)

// Compare returns the newest migration that the database has, 0 for none, and
// the newest that there is. Unlike Up it waits for nobody. It writes nothing
// but goose's own version table, where that is missing.
func Compare(ctx context.Context, db *sql.DB) (has, newest int64, err error) {
	provider, err := open(db)
	if err != nil {
		return 0, 0, err
	}
	has, newest, err = provider.GetVersions(ctx)
	if err != nil {
		return 0, 0, fmt.Errorf("schema version: %w", err)
	}
	return has, newest, nil
}
