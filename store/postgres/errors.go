package postgres

import (
	"context"
	"database/sql/driver"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/holdfast-jobs/holdfast/runtime/job"
)

// SQLSTATEs that decide what happens next.
const (
	checkViolation       = "23514"
	serializationFailure = "40001"
	deadlockDetected     = "40P01"
	lockNotAvailable     = "55P03"
	queryCanceled        = "57014"
	readOnlyTransaction  = "25006"
	// internalError is also what a session cannot start with on a full disk: the server writes a
	// file then, and does not say why it cannot.
	internalError = "XX000"
	// unknownStatement and knownStatement are what the driver never causes by itself.
	unknownStatement = "26000"
	knownStatement   = "42P05"
)

// refusedSetting begins PgBouncer's answer to a session setting that it does not know.
const refusedSetting = "unsupported startup parameter"

// SQLSTATE classes: the first two characters.
const (
	classConnection    = "08"
	classData          = "22"
	classResources     = "53"
	classLimits        = "54"
	classIntervention  = "57"
	classSystemFailure = "58"
)

// operation is the name of a statement in errors.
func operation(statement string) string { return strings.ReplaceAll(statement, "_", " ") }

// Translate turns a driver's error into one of package job's and wraps it with
// the operation, so that no other package needs to know SQLSTATEs. The context's
// own errors pass through.
func Translate(operation string, err error) error {
	if err == nil {
		return nil
	}
	if errors.Is(err, pgx.ErrNoRows) {
		return fmt.Errorf("%s: %w", operation, job.ErrNotFound)
	}
	var answer *pgconn.PgError
	var unconnected *pgconn.ConnectError
	_ = errors.As(err, &answer)
	switch {
	case answer == nil && errors.As(err, &unconnected):
		// ConnectTimeout looks like a deadline of the caller's.
		return fmt.Errorf("%s: %w: %w", operation, job.ErrUnavailable, err)
	case errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded):
		return fmt.Errorf("%s: %w", operation, err)
	case answer == nil:
		// No answer from the server: the connection failed.
		return fmt.Errorf("%s: %w: %w", operation, job.ErrUnavailable, err)
	}
	if strings.HasPrefix(answer.Message, refusedSetting) { // with another code in each version
		return fmt.Errorf("%s: the URL leads through a pooler: set database.direct_url, too: %w", operation, err)
	}
	switch answer.Code {
	case unknownStatement, knownStatement:
		return fmt.Errorf("%s: %w: %w", operation, ErrForgetfulPooler, err)
	case internalError:
		if errors.As(err, &unconnected) {
			return fmt.Errorf("%s: %w: %w", operation, job.ErrUnavailable, err)
		}
	case checkViolation:
		return fmt.Errorf("%s: %w: %s", operation, job.ErrBadData, answer.Message)
	case serializationFailure, deadlockDetected, lockNotAvailable, readOnlyTransaction:
		return fmt.Errorf("%s: %w: %w", operation, job.ErrUnavailable, err)
	}
	switch answer.Code[:2] {
	case classData, classLimits:
		return fmt.Errorf("%s: %w: %s", operation, job.ErrBadData, answer.Message)
	case classConnection, classResources, classIntervention, classSystemFailure:
		return fmt.Errorf("%s: %w: %w", operation, job.ErrUnavailable, err)
	}
	return fmt.Errorf("%s: %w", operation, err)
}

// lostRace reports whether the server rolled the statement back because of other
// transactions, so that the same statement may succeed at once.
func lostRace(err error) bool {
	var answer *pgconn.PgError
	return errors.As(err, &answer) &&
		(answer.Code == deadlockDetected || answer.Code == serializationFailure)
}

// Answered reports whether the error came from the server, which means that the server
// has rolled back. A pooler that loses the server answers in its place, with a code of
// classConnection.
func Answered(err error) bool {
	var answer *pgconn.PgError
	return errors.As(err, &answer) && !strings.HasPrefix(answer.Code, classConnection)
}

// isReadOnly reports whether the server takes no writes. It is then a standby,
// perhaps one that was the primary when we connected.
func isReadOnly(err error) bool {
	var answer *pgconn.PgError
	return errors.As(err, &answer) && answer.Code == readOnlyTransaction
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
		return errors.Is(Translate("", err), job.ErrUnavailable)
	}
	return false
}
