// Package pgtest gives tests a real PostgreSQL. The first test that asks for a
// database starts a server. Each test gets its own database, cloned from a template
// that has the schema.
//
// The server is, in this order: the one of HOLDFAST_TEST_DATABASE_URL (its
// user must be allowed to create databases), one from local binaries, or a
// container. HOLDFAST_TEST_POSTGRES=containers always uses a container, and
// HOLDFAST_TEST_POSTGRES_IMAGE names its image.
package pgtest

import (
	"context"
	"errors"
	"fmt"
	"os"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
)

// shared is the server of this test process.
var shared struct {
	sync.Mutex
	server *server
	err    error
}

// Main runs the tests of a package, stops the server that they started, and fails if
// a goroutine is left over. Use it as the body of TestMain; it does not return.
func Main(m *testing.M) {
	present := goleak.IgnoreCurrent()
	code := m.Run()
	if err := stop(); err != nil {
		code = fail(code, err)
	}
	if code == 0 {
		if err := goleak.Find(present); err != nil {
			code = fail(code, err)
		}
	}
	os.Exit(code)
}

// URL returns the address of a fresh database with the schema. It is dropped,
// with all connections to it, after the test.
func URL(t testing.TB) string {
	t.Helper()
	s := running(t)
	template, err := s.migratedTemplate(t.Context())
	require.NoError(t, err)
	return s.create(t, template)
}

// EmptyURL returns the address of a fresh database without the schema. It is
// dropped, with all connections to it, after the test.
func EmptyURL(t testing.TB) string {
	t.Helper()
	return running(t).create(t, "template0")
}

// Pool returns a pool on a fresh database with the schema. It is closed after the
// test, once every connection was released.
func Pool(t testing.TB) *pgxpool.Pool {
	t.Helper()
	pool, err := pgxpool.New(t.Context(), URL(t))
	require.NoError(t, err)
	t.Cleanup(pool.Close)
	return pool
}

func running(t testing.TB) *server {
	t.Helper()
	shared.Lock()
	defer shared.Unlock()
	if shared.server == nil && shared.err == nil {
		// The server outlives the first test.
		ctx, cancel := context.WithTimeout(context.Background(), 5*time.Minute)
		defer cancel()
		shared.server, shared.err = startServer(ctx)
	}
	require.NoError(t, shared.err, "PostgreSQL for tests")
	return shared.server
}

func stop() error {
	shared.Lock()
	defer shared.Unlock()
	err := removeClusters()
	if shared.server == nil {
		return err
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	return errors.Join(err, shared.server.stop(ctx))
}

func fail(code int, err error) int {
	fmt.Fprintln(os.Stderr, "pgtest:", err)
	return max(code, 1)
}
