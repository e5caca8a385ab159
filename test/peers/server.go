package main

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/holdfast-jobs/holdfast/test/rig"
)

// cluster is the PostgreSQL server that all systems use.
type cluster struct {
	url *url.URL
	// postmaster is the server's main process; 0 if the server is on another machine.
	postmaster int
}

func openCluster(ctx context.Context, address string) (*cluster, error) {
	parsed, err := url.Parse(address)
	if err != nil || parsed.Scheme != "postgres" && parsed.Scheme != "postgresql" {
		return nil, errors.New("the database must be given as postgres://…")
	}
	conn, err := pgx.Connect(ctx, address)
	if err != nil {
		return nil, err
	}
	defer func() { _ = conn.Close(context.WithoutCancel(ctx)) }()
	var backend int
	if err := conn.QueryRow(ctx, "select pg_backend_pid()").Scan(&backend); err != nil {
		return nil, err
	}
	c := &cluster{url: parsed}
	if host := conn.Config().Host; host == "localhost" || host == "127.0.0.1" || host == "::1" || host[0] == '/' {
		c.postmaster, _ = rig.Parent(backend)
	}
	return c, nil
}

// database belongs to one peer in one run.
type database struct {
	*cluster
	name, address string
	conn          *pgx.Conn
}

func (c *cluster) create(ctx context.Context) (*database, error) {
	d := &database{cluster: c, name: "holdfast_peers_" + time.Now().UTC().Format("20060102_150405_000000")}
	if err := c.execute(ctx, "create database "+d.name); err != nil {
		return nil, err
	}
	address, query := *c.url, c.url.Query()
	query.Del("dbname") // it would override the path
	query.Del("database")
	address.Path, address.RawQuery = "/"+d.name, query.Encode()
	d.address = address.String()
	var err error
	if d.conn, err = pgx.Connect(ctx, d.address); err != nil {
		return nil, errors.Join(err, d.drop(ctx))
	}
	return d, nil
}

func (d *database) drop(ctx context.Context) error {
	ctx = context.WithoutCancel(ctx)
	if d.conn != nil {
		_ = d.conn.Close(ctx)
	}
	return d.execute(ctx, "drop database "+d.name+" with (force)")
}

func (c *cluster) execute(ctx context.Context, statement string) error {
	conn, err := pgx.Connect(ctx, c.url.String())
	if err != nil {
		return err
	}
	defer func() { _ = conn.Close(context.WithoutCancel(ctx)) }()
	_, err = conn.Exec(ctx, statement)
	return err
}

// rest puts the server into a known state.
func (d *database) rest(ctx context.Context) error {
	for _, statement := range []string{"vacuum analyze", "checkpoint"} {
		if _, err := d.conn.Exec(ctx, statement); err != nil {
			return err
		}
	}
	return nil
}

// written returns how much WAL the server has written so far, in bytes.
func (d *database) written(ctx context.Context) (bytes int64, err error) {
	err = d.conn.QueryRow(ctx, "select (pg_current_wal_insert_lsn() - '0/0')::bigint").Scan(&bytes)
	return bytes, err
}

// check runs a statement that counts rows, and compares the result.
func (d *database) check(ctx context.Context, statement string, want int) error {
	var got int
	if err := d.conn.QueryRow(ctx, statement).Scan(&got); err != nil {
		return err
	}
	if got != want {
		return fmt.Errorf("%s: %d instead of %d", statement, got, want)
	}
	return nil
}

// pin holds a snapshot until release is called.
func (d *database) pin(ctx context.Context) (release func(), err error) {
	conn, err := pgx.Connect(ctx, d.address)
	if err != nil {
		return nil, err
	}
	release = func() { _ = conn.Close(context.WithoutCancel(ctx)) }
	// The snapshot is taken by the first statement that reads.
	for _, statement := range []string{"begin isolation level repeatable read", "select count(*) from pg_class"} {
		if _, err := conn.Exec(ctx, statement); err != nil {
			release()
			return nil, err
		}
	}
	return release, nil
}
