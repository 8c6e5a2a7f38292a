package main

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
)

// bareProxy is the input of the proxy.
type bareProxy struct {
	Addr     string `json:"addr"`
	Upstream string `json:"upstream"`
	// Certificate and Key are the files of TLS; without them there is none.
	Certificate string `json:"certificate,omitempty"`
	Key         string `json:"key,omitempty"`
}

// serveProxy is the role proxy, the yardstick: the standard library's proxy with a
// transport tuned like the gateway's, that sets the platform's key and judges
// nothing.
func serveProxy(ctx context.Context, stdin io.Reader, _ io.Writer) error {
	var p bareProxy
	ctx, err := told(ctx, stdin, &p)
	if err != nil {
		return err
	}
	upstream := &url.URL{Scheme: "http", Host: p.Upstream}
	proxy := &httputil.ReverseProxy{
		Rewrite: func(r *httputil.ProxyRequest) {
			r.SetURL(upstream)
			r.Out.Header.Set("Authorization", "Bearer bench-platform-key")
		},
		Transport: &http.Transport{MaxIdleConns: 256, MaxIdleConnsPerHost: 256, DisableCompression: true},
	}
	s := &http.Server{
		ReadHeaderTimeout: patience, // a machine busy with other work is slow
		Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			// Without full duplex, the server closes the request's body when a response begins. A transport that has sent all of the body, and
			// has yet to read its end, takes that for a failure and closes the upstream's connection: a stream of events ends.
			if err := http.NewResponseController(w).EnableFullDuplex(); err != nil {
				http.Error(w, err.Error(), http.StatusInternalServerError)
				return
			}
			proxy.ServeHTTP(w, r)
		}),
	}
	l, err := new(net.ListenConfig).Listen(ctx, "tcp", p.Addr)
	if err != nil {
		return err
	}
	defer context.AfterFunc(ctx, func() { _ = s.Close() })()
	if p.Certificate != "" {
		err = s.ServeTLS(l, p.Certificate, p.Key)
	} else {
		err = s.Serve(l)
	}
	if errors.Is(err, http.ErrServerClosed) {
		return nil
	}
	return err
}

// told reads the input of a role. The context it returns ends with the input, so that no
// server outlives the run that started it.
func told(ctx context.Context, stdin io.Reader, to any) (context.Context, error) {
	in := json.NewDecoder(stdin)
	if err := in.Decode(to); err != nil {
		return ctx, err
	}
	ctx, cancel := context.WithCancel(ctx)
	go func() {
		_, _ = io.Copy(io.Discard, stdin) // nothing more is said: it ends
		cancel()
	}()
	return ctx, nil
}
