package postgres

import (
	"context"
	"fmt"
	"maps"
	"slices"

	"github.com/jackc/pgx/v5"

	"github.com/holdfast-jobs/holdfast/store/sql"
)

// sessionSettings apply to every connection. The timeouts make sure that no
// statement waits forever. The planner settings pin the plans: every statement
// uses the index that its header names. Left to itself, the planner picks bad
// plans on missing or skewed statistics (60 times the cost of a settle,
// measured elsewhere). With pinned plans a generic plan is as good as a custom
// one and saves planning time.
var sessionSettings = map[string]string{
	"timezone":                            "UTC",
	"statement_timeout":                   "15s",
	"lock_timeout":                        "5s",
	"idle_in_transaction_session_timeout": "30s",
	"plan_cache_mode":                     "force_generic_plan",
	"client_min_messages":                 "warning", // a commit that did not wait for its standby warns
	"enable_seqscan":                      "off",
	"enable_bitmapscan":                   "off",
	"enable_hashjoin":                     "off",
	"enable_mergejoin":                    "off",
	"enable_hashagg":                      "off",
	"enable_memoize":                      "off",
	"jit":                                 "off",
	// A sequential scan that cannot be avoided looks so dear to the planner that it would
	// share even that of an empty table out, and starting its workers takes 10 ms.
	"max_parallel_workers_per_gather": "0",
}

// unlimited are the settings of a session that may take long, and whose plans are the
// planner's. They undo those of sessionSettings, which the role may have.
var unlimited = map[string]string{
	"statement_timeout": "0", "lock_timeout": "0", "idle_in_transaction_session_timeout": "0",
	"plan_cache_mode": "auto", "enable_seqscan": "on", "enable_bitmapscan": "on", "enable_hashjoin": "on", "enable_mergejoin": "on",
	"enable_hashagg": "on", "enable_memoize": "on",
}

// readSettings cancel a read after readTimeout.
func readSettings() map[string]string {
	settings := maps.Clone(sessionSettings)
	settings["statement_timeout"] = readTimeout.String()
	return settings
}

// pooledSettings are those that a client of a pooler sends. Poolers refuse or ignore
// most others; this one they give to whichever session serves the client.
func pooledSettings() map[string]string {
	return map[string]string{"timezone": sessionSettings["timezone"]}
}

// setUp makes sessions start with the settings.
func setUp(cfg *pgx.ConnConfig, settings map[string]string, name string) {
	maps.Copy(cfg.RuntimeParams, settings)
	cfg.RuntimeParams["application_name"] = name
	// The driver sends UTF-8. A server with another encoding must convert or refuse it.
	cfg.RuntimeParams["client_encoding"] = "UTF8"
}

// Unlimited returns the configuration of sessions that may take long, such as those of
// migrations.
func Unlimited(url string) (*pgx.ConnConfig, error) {
	cfg, err := pgx.ParseConfig(url)
	if err != nil {
		return nil, err
	}
	cfg.ConnectTimeout = ConnectTimeout
	maps.Copy(cfg.RuntimeParams, unlimited)
	return cfg, nil
}

// SetDefaults gives the URL's role, in its database, the settings of the store's sessions.
// Sessions that start later have them, whoever starts them. It returns how many settings
// it changed. Several processes may call it at once.
func SetDefaults(ctx context.Context, url string) (changed int, err error) {
	err = withConn(ctx, url, "settings", sessionSettings, func(conn *pgx.Conn) error {
		return pgx.BeginFunc(ctx, conn, func(tx pgx.Tx) error {
			if _, err := tx.Exec(ctx, sql.Text("lock_settings")); err != nil {
				return err
			}
			names := slices.Sorted(maps.Keys(sessionSettings))
			changes, err := Rows(ctx, tx, "role_settings", pgx.RowTo[string], names, Column(names, func(name string) string { return sessionSettings[name] }))
			if err != nil {
				return err
			}
			for _, change := range changes {
				if _, err := tx.Exec(ctx, change); err != nil {
					return err
				}
			}
			changed = len(changes)
			return nil
		})
	})
	if err != nil {
		return 0, err
	}
	return changed, nil
}

// withConn runs do on a connection of its own, called after what it is for, and translates its error.
func withConn(ctx context.Context, url, purpose string, settings map[string]string, do func(*pgx.Conn) error) error {
	cfg, err := pgx.ParseConfig(url)
	if err != nil {
		return fmt.Errorf("read database URL: %w", err)
	}
	cfg.ConnectTimeout = ConnectTimeout
	setUp(cfg, settings, "holdfast "+purpose)
	conn, err := Connect(ctx, cfg)
	if err != nil {
		return Translate("connect", err)
	}
	defer func() { _ = conn.Close(context.WithoutCancel(ctx)) }()
	return Translate(purpose, do(conn))
}

// Listener returns the configuration of a connection that listens. It leads through no
// pooler, which would lose what it hears.
func (db *DB) Listener() (*pgx.ConnConfig, error) {
	cfg, err := pgx.ParseConfig(db.direct)
	if err != nil {
		return nil, fmt.Errorf("read database URL: %w", err)
	}
	cfg.ConnectTimeout = ConnectTimeout
	setUp(cfg, sessionSettings, "holdfast listener")
	return cfg, nil
}
