package redistest

import (
	"context"
	"strconv"
	"strings"
	"testing"
	"time"
)

// A Mark is a state of a server's data that it can go back to.
type Mark struct {
	t           testing.TB
	own, behind Conn
	port        int
}

// Mark keeps the data of s as it is now: in a replica, which is promoted.
func (s *Server) Mark() *Mark {
	s.t.Helper()
	other := Run(s.t)
	m := &Mark{
		t: s.t, port: other.port,
		own: Client(s.t, s.Addr()), behind: Client(s.t, other.Addr()),
	}
	m.follow(m.behind, m.own, s.port)
	return m
}

// RollBack makes the server lose all writes since the mark and stay the same process: it becomes a replica of the one that is behind and is promoted again.
func (m *Mark) RollBack() {
	m.t.Helper()
	m.follow(m.own, m.behind, m.port)
}

// follow makes a server the replica of its master until it has all data.
func (m *Mark) follow(server, master Conn, port int) {
	m.t.Helper()
	ctx, cancel := context.WithTimeout(m.t.Context(), formation)
	defer cancel()
	do := func(c Conn, args ...any) {
		if err := c.Do(ctx, args...).Err(); err != nil {
			m.t.Fatalf("redistest: %v: %v", args, err)
		}
	}
	do(master, "CONFIG", "SET", "repl-diskless-sync-delay", "0")
	do(server, "REPLICAOF", "127.0.0.1", strconv.Itoa(port))
	for poll := time.NewTicker(10 * time.Millisecond); ; {
		info, err := server.Info(ctx, "replication").Result()
		if err == nil && strings.Contains(info, "master_link_status:up") {
			break
		}
		select {
		case <-poll.C:
		case <-ctx.Done():
			m.t.Fatalf("redistest: no replica in time: %s (%v)", info, err)
		}
	}
	do(server, "REPLICAOF", "NO", "ONE")
}
