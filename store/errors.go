package store

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/holdfast-jobs/holdfast/runtime/job"
)

// SQLSTATEs that decide what is done next.
const (
	checkViolation        = "23514"
	uniqueViolation       = "23505"
	serializationFailure  = "40001"
	deadlockDetected      = "40P01"
	lockNotAvailable      = "55P03"
	queryCanceled         = "57014"
	readOnlyTransaction   = "25006"
	insufficientPrivilege = "42501"
	undefinedTable        = "42P01"
)

// classShutdown begins the codes of a server that goes away or comes up.
const classShutdown = "57P"

// SQLSTATE classes, by their first two characters.
const (
	classConnection    = "08"
	classData          = "22"
	classResources     = "53"
	classLimits        = "54"
	classIntervention  = "57"
	classSystemFailure = "58"
)

// translate turns a driver's error into one of package job's, wrapped with
// the operation, so that no other package needs to know a SQLSTATE. The
// context's own errors pass through.
func translate(operation string, err error) error {
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
	switch answer.Code {
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

// worthAnotherTry says that the server rolled the statement back for reasons
// of timing, so that the very same statement may succeed at once.
func worthAnotherTry(err error) bool {
	var answer *pgconn.PgError
	return errors.As(err, &answer) &&
		(answer.Code == deadlockDetected || answer.Code == serializationFailure)
}

// answered says that the error came from the server: it has rolled back. A pooler in
// between answers itself when it has lost the server, with a code of classConnection.
func answered(err error) bool {
	var answer *pgconn.PgError
	return errors.As(err, &answer) && !strings.HasPrefix(answer.Code, classConnection)
}

// outcomeUnknown says that a write was sent and may or may not have been committed,
// or not where a failover leaves it.
func outcomeUnknown(err error) bool { return errors.Is(err, job.ErrOutcomeUnknown) }

// isReadOnly says that the server takes no writes: it is a standby, perhaps one that
// was the primary when we connected.
func isReadOnly(err error) bool {
	var answer *pgconn.PgError
	return errors.As(err, &answer) && answer.Code == readOnlyTransaction
}

// idTaken says that a new id is a job already.
func idTaken(err error) bool {
	var answer *pgconn.PgError
	return errors.As(err, &answer) && answer.Code == uniqueViolation && answer.ConstraintName == "jobs_pkey"
}
