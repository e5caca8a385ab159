package store

import (
	"context"
	"crypto/tls"
	"database/sql/driver"
	"errors"
	"fmt"
	"io"
	"net"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/holdfast-jobs/holdfast/runtime/job"
)

// Reach connects to the database, checks that it takes writes, and disconnects.
// The error is job.ErrUnavailable when that may change by itself. A login that
// is refused, a database that does not exist, a missing privilege and a
// certificate that does not verify do not. The schema need not be there.
func Reach(ctx context.Context, url string) error {
	cfg, err := pgx.ParseConfig(url)
	if err != nil {
		return fmt.Errorf("read database URL: %w", err)
	}
	cfg.ConnectTimeout = ConnectTimeout
	// A pooler in between may give each statement another session.
	cfg.DefaultQueryExecMode = pgx.QueryExecModeExec
	conn, err := pgx.ConnectConfig(ctx, cfg)
	var certificate *tls.CertificateVerificationError
	if errors.As(err, &certificate) {
		return fmt.Errorf("connect: %w", err)
	}
	if err != nil {
		return translate("connect", err)
	}
	ctx, cancel := context.WithTimeout(ctx, ConnectTimeout)
	defer cancel()
	defer func() { _ = conn.Close(ctx) }()
	var readOnly bool
	if err := conn.QueryRow(ctx, readOnlySQL).Scan(&readOnly); err != nil {
		if errors.Is(err, context.DeadlineExceeded) {
			return fmt.Errorf("connect: %w: no answer within %s", job.ErrUnavailable, ConnectTimeout)
		}
		return translate("connect", err)
	}
	if readOnly {
		return fmt.Errorf("connect: %w: it is read-only, as a standby is", job.ErrUnavailable)
	}
	return nil
}

// Unavailable reports whether an error of the driver says that the database
// cannot be used now but may be usable later: it does not answer, starts or
// stops, takes no writes, or has no connection left.
func Unavailable(err error) bool {
	var answer *pgconn.PgError
	var unconnected *pgconn.ConnectError
	var network net.Error
	switch {
	case errors.Is(err, driver.ErrBadConn), pgconn.SafeToRetry(err):
		return true
	case errors.As(err, &answer), errors.As(err, &unconnected), errors.As(err, &network), errors.Is(err, io.ErrUnexpectedEOF):
		return errors.Is(translate("", err), job.ErrUnavailable)
	}
	return false
}
