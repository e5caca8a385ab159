package pgtest

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"net/url"
	"os"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"

	"github.com/holdfast-jobs/holdfast/store/embedded"
)

// connections is max_connections of the servers that this package starts for its tests. Nine
// orchestrators at once, three of each of three parallel tests, use up to 24 each, and the tests
// have connections of their own.
const connections = "300"

// server is a PostgreSQL on which this process creates databases.
type server struct {
	url   *url.URL // of its maintenance database
	admin *pgxpool.Pool
	// copying is the clause that makes clones fast, on servers that support it.
	copying string
	end     func(context.Context) error

	mu       sync.Mutex
	template string // empty until it is known to be there
	// private says that no other process can use the template, so the template is dropped
	// at the end.
	private bool
}

func startServer(ctx context.Context) (*server, error) {
	address, end, err := provide(ctx)
	if err != nil {
		return nil, err
	}
	s, err := connect(ctx, address, end)
	if err != nil {
		return nil, errors.Join(err, end(ctx))
	}
	return s, nil
}

// provide finds or starts a server and returns how to stop it.
func provide(ctx context.Context) (address string, end func(context.Context) error, err error) {
	if os.Getenv("HOLDFAST_TEST_POSTGRES") == "containers" {
		return startContainer(ctx)
	}
	if address := os.Getenv("HOLDFAST_TEST_DATABASE_URL"); address != "" {
		return address, func(context.Context) error { return nil }, nil
	}
	address, end, err = startLocal(ctx)
	if !errors.Is(err, embedded.ErrNoPostgres) {
		return address, end, err
	}
	address, end, containerErr := startContainer(ctx)
	if containerErr != nil {
		return "", nil, errors.Join(err, containerErr)
	}
	return address, end, nil
}

func connect(ctx context.Context, address string, end func(context.Context) error) (*server, error) {
	u, err := url.Parse(address)
	if err != nil {
		return nil, fmt.Errorf("database URL: %w", err)
	}
	cfg, err := pgxpool.ParseConfig(address)
	if err != nil {
		return nil, fmt.Errorf("database URL: %w", err)
	}
	cfg.MaxConns = 4
	admin, err := pgxpool.NewWithConfig(ctx, cfg)
	if err != nil {
		return nil, fmt.Errorf("connect: %w", err)
	}
	var version int
	if err := admin.QueryRow(ctx, "select current_setting('server_version_num')::int").Scan(&version); err != nil {
		admin.Close()
		return nil, fmt.Errorf("connect: %w", err)
	}
	s := &server{url: u, admin: admin, end: end}
	if version >= 150000 {
		// A clone takes 10 ms; through the write-ahead log it would take 29 ms.
		s.copying = " strategy file_copy"
	}
	return s, nil
}

// create makes a database that the end of the test drops.
func (s *server) create(t testing.TB, template string) string {
	t.Helper()
	name := databaseName(t.Name())
	require.NoError(t, s.createDatabase(t.Context(), name, template))
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		defer cancel()
		_, err := s.admin.Exec(ctx, "drop database if exists "+quoted(name)+" with (force)")
		require.NoError(t, err, "drop the test's database")
	})
	return s.address(name)
}

func (s *server) createDatabase(ctx context.Context, name, template string) error {
	if _, err := s.admin.Exec(ctx, "create database "+quoted(name)+" template "+quoted(template)+s.copying); err != nil {
		return fmt.Errorf("create database: %w", err)
	}
	return nil
}

func (s *server) address(database string) string {
	u := *s.url
	u.Path = "/" + database
	return u.String()
}

func (s *server) stop(ctx context.Context) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	var err error
	if s.private {
		err = s.dropTemplate(ctx, s.template)
	}
	s.admin.Close()
	return errors.Join(err, s.end(ctx))
}

var notInNames = regexp.MustCompile(`[^a-z0-9]+`)

// databaseName shows in pg_stat_activity which test a database belongs to. PostgreSQL
// truncates names to 63 bytes.
func databaseName(test string) string {
	readable := notInNames.ReplaceAllString(strings.ToLower(test), "_")
	return fmt.Sprintf("%.40s_%s", readable, strings.ToLower(rand.Text()[:12]))
}

func quoted(name string) string { return pgx.Identifier{name}.Sanitize() }
