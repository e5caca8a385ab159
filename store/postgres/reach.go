package postgres

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"

	"github.com/holdfast-jobs/holdfast/runtime/job"
	"github.com/holdfast-jobs/holdfast/store/sql"
)

// Reach connects to the database, checks that it takes writes, and disconnects.
// The schema need not exist. The error is job.ErrUnavailable if waiting may help.
// It is another one if the login is refused, the database does not exist, a
// privilege is missing, or the certificate does not verify.
func Reach(ctx context.Context, url string) error {
	cfg, err := pgx.ParseConfig(url)
	if err != nil {
		return fmt.Errorf("read database URL: %w", err)
	}
	cfg.ConnectTimeout = ConnectTimeout
	// A pooler in between may give each statement another session.
	cfg.DefaultQueryExecMode = pgx.QueryExecModeExec
	conn, err := Connect(ctx, cfg)
	var certificate *tls.CertificateVerificationError
	if errors.As(err, &certificate) {
		return fmt.Errorf("connect: %w", err)
	}
	if err != nil {
		return Translate("connect", err)
	}
	ctx, cancel := context.WithTimeout(ctx, ConnectTimeout)
	defer cancel()
	defer func() { _ = conn.Close(ctx) }()
	var readOnly bool
	if err := conn.QueryRow(ctx, sql.Text("read_only")).Scan(&readOnly); err != nil {
		if errors.Is(err, context.DeadlineExceeded) {
			return fmt.Errorf("connect: %w: no answer within %s", job.ErrUnavailable, ConnectTimeout)
		}
		return Translate("connect", err)
	}
	if readOnly {
		return fmt.Errorf("connect: %w: it is read-only, as a standby is", job.ErrUnavailable)
	}
	return nil
}
