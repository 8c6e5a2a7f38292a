package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync/atomic"

	"golang.org/x/sync/errgroup"
)

// key is the caller's key; the emulator, asked directly, knows it too.
const key = "bench_caller_key"

// requestOf returns the bytes of one request: a list for GET, a pod of about
// 600 bytes for POST.
func requestOf(kind string) string {
	if kind == "GET" {
		return "GET /v2/catalog/datacenters HTTP/1.1\r\nHost: bench\r\nAuthorization: Bearer " + key + "\r\n\r\n"
	}
	body := `{"name":"training-run","image":"registry.example/team/trainer:2.4.1","gpu":{"id":"NVIDIA L4","count":1},"cloud":"SECURE","disk":40,` +
		`"ports":["8888/http","22/tcp"],"env":{"STAGE":"bench","NOTE":"` + strings.Repeat("x", 360) + `"}}`
	return fmt.Sprintf("POST /v2/pods HTTP/1.1\r\nHost: bench\r\nAuthorization: Bearer %s\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s",
		key, len(body), body)
}

// load sends n requests over some connections, each waiting for its answer.
func load(ctx context.Context, addr, request string, n, connections int) error {
	var left atomic.Int64
	left.Store(int64(n))
	group, ctx := errgroup.WithContext(ctx)
	for range connections {
		group.Go(func() error {
			conn, err := (&net.Dialer{}).DialContext(ctx, "tcp", addr)
			if err != nil {
				return err
			}
			defer func() { _ = conn.Close() }()
			r := bufio.NewReaderSize(conn, 32<<10)
			for left.Add(-1) >= 0 && ctx.Err() == nil {
				if err := exchange(conn, r, request); err != nil {
					return err
				}
			}
			return ctx.Err()
		})
	}
	err := group.Wait()
	if errors.Is(err, context.Canceled) {
		return context.Cause(ctx)
	}
	return err
}

func exchange(w io.Writer, r *bufio.Reader, request string) error {
	if _, err := io.WriteString(w, request); err != nil {
		return err
	}
	res, err := http.ReadResponse(r, nil)
	if err != nil {
		return err
	}
	defer func() { _ = res.Body.Close() }()
	if res.StatusCode >= http.StatusBadRequest {
		body, _ := io.ReadAll(io.LimitReader(res.Body, 512))
		return fmt.Errorf("answered %d: %s", res.StatusCode, body)
	}
	_, err = io.Copy(io.Discard, res.Body)
	return err
}
