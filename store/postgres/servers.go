package postgres

import (
	"cmp"
	"context"
	"slices"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/holdfast-jobs/holdfast/store/sql"
)

// identifyWithin limits how long servers may take to say who they are.
const identifyWithin = 2 * time.Second

// Server identifies a running PostgreSQL.
type Server struct {
	// Cluster is the same for a primary and its standbys.
	Cluster int64
	Started time.Time
	// Database is the name of the one that the session is in, as the server calls it.
	Database string
	// User is the one of the session.
	User string
	// Timeline is the one on which the server takes writes; 0 if it takes none.
	Timeline int32
}

// Same reports whether both are one server.
func (s Server) Same(other Server) bool {
	return s.Cluster == other.Cluster && s.Started.Equal(other.Started)
}

// Reached is a server and the address, host:port, at which a new connection reached it.
type Reached struct {
	Server
	Address string
}

// Servers returns the servers that new connections reach at each address of the URLs,
// standbys included. Those that do not answer are left out.
func (p *Pool) Servers(ctx context.Context) []Reached {
	ctx, cancel := context.WithTimeout(ctx, identifyWithin)
	defer cancel()
	hosts := hostsOf(p.Config().ConnConfig)
	if direct, err := p.db.Listener(); err == nil {
		hosts = append(hosts, hostsOf(direct)...)
	}
	byAddress := make(map[string]*pgx.ConnConfig)
	for _, host := range hosts {
		host.ValidateConnect = nil // whatever it is
		byAddress[address(host)] = host
	}
	var reached []Reached
	var mu sync.Mutex
	var asked sync.WaitGroup
	for address, cfg := range byAddress {
		asked.Go(func() {
			if server, err := identify(ctx, cfg); err == nil {
				mu.Lock()
				defer mu.Unlock()
				reached = append(reached, Reached{Server: server, Address: address})
			}
		})
	}
	asked.Wait()
	slices.SortFunc(reached, func(a, b Reached) int { return cmp.Compare(a.Address, b.Address) })
	return reached
}

func identify(ctx context.Context, cfg *pgx.ConnConfig) (server Server, err error) {
	conn, err := pgx.ConnectConfig(ctx, cfg)
	if err != nil {
		return server, err
	}
	defer func() { err = cmp.Or(err, conn.Close(ctx)) }()
	return serverOf(ctx, conn)
}

// serverOf returns the server, the database and the user that a session has, or the driver's error.
func serverOf(ctx context.Context, conn *pgx.Conn) (server Server, err error) {
	rows, err := conn.Query(ctx, sql.Text("server"))
	if err != nil {
		return server, err
	}
	return pgx.CollectExactlyOneRow(rows, pgx.RowToStructByName[Server])
}
