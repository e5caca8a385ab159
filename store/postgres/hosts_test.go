package postgres

import (
	"net"
	"net/url"
	"strconv"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"github.com/holdfast-jobs/holdfast/runtime/job"
	"github.com/holdfast-jobs/holdfast/test/blackhole"
	"github.com/holdfast-jobs/holdfast/test/pgtest"
)

// among returns a URL with several hosts, of which one is the server of the database.
func among(t *testing.T, database string, hosts ...string) string {
	t.Helper()
	cfg, err := pgx.ParseConfig(database)
	require.NoError(t, err)
	names, ports := "", ""
	for _, address := range hosts {
		host, port, err := net.SplitHostPort(address)
		require.NoError(t, err)
		names, ports = names+host+",", ports+port+","
	}
	query := url.Values{
		"host": {names + cfg.Host}, "port": {ports + strconv.Itoa(int(cfg.Port))},
		"sslmode": {"disable"}, "target_session_attrs": {"read-write"},
	}
	u := url.URL{Scheme: "postgres", User: url.UserPassword(cfg.User, cfg.Password), Path: "/" + cfg.Database, RawQuery: query.Encode()}
	return u.String()
}

// The driver would wait for ConnectTimeout at the first one.
func TestHostsThatHangDelayNoConnection(t *testing.T) {
	t.Parallel()
	url := among(t, pgtest.EmptyURL(t), blackhole.Listen(t))
	cfg, err := pgx.ParseConfig(url)
	require.NoError(t, err)
	cfg.ConnectTimeout = time.Hour
	conn, err := Connect(t.Context(), cfg)
	require.NoError(t, err)
	require.NoError(t, conn.Close(t.Context()))

	db, err := Open(t.Context(), Config{URL: url, MaxConnections: 20})
	require.NoError(t, err)
	t.Cleanup(db.Close)
	require.NoError(t, Reach(t.Context(), url))
	working, err := db.working(t.Context(), nil)
	require.NoError(t, err)
	require.Empty(t, working)
}

// The standby refuses at first, and the primary never answers.
func TestAStandbyIsAskedAgainWhileThePrimaryHangs(t *testing.T) {
	t.Parallel()
	pair := pgtest.NewPair(t)
	cfg, err := pgx.ParseConfig(among(t, pair.Standby, blackhole.Listen(t)))
	require.NoError(t, err)
	cfg.ConnectTimeout = time.Hour
	connected := make(chan error, 1)
	go func() {
		conn, err := Connect(t.Context(), cfg)
		if err == nil {
			err = conn.Close(t.Context())
		}
		connected <- err
	}()
	pair.Promote(t)
	require.NoError(t, <-connected)
}

func TestIfNoHostAcceptsTheDatabaseIsUnavailable(t *testing.T) {
	t.Parallel()
	pair := pgtest.NewPair(t)
	cfg, err := pgx.ParseConfig(among(t, pair.Standby, "127.0.0.1:1"))
	require.NoError(t, err)
	_, err = Connect(t.Context(), cfg)
	require.ErrorContains(t, err, "read only")
	require.ErrorContains(t, err, "127.0.0.1:1")
	require.ErrorIs(t, Translate("connect", err), job.ErrUnavailable)
}
