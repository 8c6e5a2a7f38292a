package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"math"
	"net"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"time"

	"github.com/tollgate-dev/tollgate/test/platform"
)

// The platform of a measurement is a server of fixed answers: the emulator costs
// more than the gateway. The answers are the emulator's.

// recording is the platform's answers as bytes, by method and path.
type recording struct {
	Addr string `json:"addr"`
	// Secure is where it speaks TLS, by HTTP/1.1 and HTTP/2, with the files of a
	// certificate and its key.
	Secure      string            `json:"secure"`
	Certificate string            `json:"certificate"`
	Key         string            `json:"key"`
	Answers     map[string]string `json:"answers"`
	// Pod is the id of the pod there is.
	Pod string `json:"pod"`
}

// How much the lists hold: GET /v2/pods and GET /v2/templates, whose answer is
// 1 MB.
const (
	podsListed      = 20
	templatesListed = 20
	templateNote    = 52_000
)

// record plays calls to an emulator and keeps its answers.
func record() (recording, error) {
	r := recording{Answers: map[string]string{}}
	const key = "bench-platform-key"
	s, err := platform.New(platform.Options{
		Accounts:  []platform.Account{{ID: "bench", Key: key, Exempt: true, Balance: math.MaxInt32}},
		KeepCalls: -1,
	})
	if err != nil {
		return r, err
	}
	if err := s.SetStock("NVIDIA L4", "", "", -1); err != nil {
		return r, err
	}
	call := func(method, target, body string) ([]byte, error) {
		req := httptest.NewRequest(method, target, strings.NewReader(body))
		req.Header.Set("Authorization", "Bearer "+key)
		req.Header.Set("Content-Type", "application/json")
		w := httptest.NewRecorder()
		s.ServeHTTP(w, req)
		if w.Code >= http.StatusBadRequest {
			return nil, fmt.Errorf("emulator: %s %s: %d %s", method, target, w.Code, w.Body)
		}
		r.Answers[method+" "+target] = answer(w.Code, w.Header().Get("Content-Type"), w.Body.String())
		return w.Body.Bytes(), nil
	}
	for range podsListed {
		body, err := call(http.MethodPost, "/v2/pods", podBody("bench", "NVIDIA L4", ""))
		if err != nil {
			return r, err
		}
		var pod struct{ ID string }
		if err := json.Unmarshal(body, &pod); err != nil {
			return r, err
		}
		r.Pod = pod.ID
	}
	for i := range templatesListed {
		template := fmt.Sprintf(`{"name":"bench-%02d","image":"registry.example/team/trainer:2.4.1","disk":40,"env":{"NOTE":%q}}`, i, strings.Repeat("x", templateNote))
		if _, err := call(http.MethodPost, "/v2/templates", template); err != nil {
			return r, err
		}
	}
	for _, path := range []string{
		"/v2/pods", "/v2/pods/" + r.Pod, "/v2/templates", "/v2/catalog/gpus", "/v2/catalog/cpus", "/v2/catalog/datacenters",
		"/v2/clusters", "/v2/serverless", "/v2/network-volumes", "/v2/registries",
	} {
		if _, err := call(http.MethodGet, path, ""); err != nil {
			return r, err
		}
	}
	r.Answers["POST "+chatPath] = chatStream()
	r.Answers["POST "+runPath] = answer(http.StatusOK, "application/json",
		`{"id":"sync-c1","status":"COMPLETED","delayTime":5,"executionTime":40,"workerId":"w1","output":{"ok":true}}`)
	r.Answers["POST /v1/traces"] = answer(http.StatusOK, "application/x-protobuf", "") // the collector that traces are sent to
	return r, nil
}

// answer is the bytes of a whole response.
func answer(status int, contentType, body string) string {
	return fmt.Sprintf("HTTP/1.1 %d %s\r\nContent-Type: %s\r\nContent-Length: %d\r\n\r\n%s", status, http.StatusText(status), contentType, len(body), body)
}

// runPath is where an endpoint takes jobs, chatPath where a language model of one
// listens, and chatStream its answer: 200 events, each in a chunk of its own.
//
// livePath answers with an event each liveEvery, for as long as the caller stays,
// whose data is the time at which it was sent, in nanoseconds.
const (
	runPath   = "/v2/bench/runsync"
	chatPath  = "/v2/bench/openai/v1/chat/completions"
	livePath  = "/v2/bench/openai/v1/completions"
	liveEvery = 20 * time.Millisecond
)

func chatStream() string {
	var b strings.Builder
	b.WriteString("HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n")
	for i := range 200 {
		event := fmt.Sprintf(`data: {"id":"c1","object":"chat.completion.chunk","model":"bench","choices":[{"index":0,"delta":{"content":"word%03d "}}]}`+"\n\n", i)
		fmt.Fprintf(&b, "%x\r\n%s\r\n", len(event), event)
	}
	b.WriteString("e\r\ndata: [DONE]\n\n\r\n0\r\n\r\n")
	return b.String()
}

// servePlatform is the role platform: it gives its fixed answers until its input ends.
func servePlatform(ctx context.Context, stdin io.Reader, _ io.Writer) error {
	var r recording
	ctx, err := told(ctx, stdin, &r)
	if err != nil {
		return err
	}
	l, err := new(net.ListenConfig).Listen(ctx, "tcp", r.Addr)
	if err != nil {
		return err
	}
	defer context.AfterFunc(ctx, func() { _ = l.Close() })()
	secure, err := new(net.ListenConfig).Listen(ctx, "tcp", r.Secure)
	if err != nil {
		return err
	}
	s := &http.Server{Handler: r, ReadHeaderTimeout: patience}
	defer func() { _ = s.Close() }()
	go func() { _ = s.ServeTLS(secure, r.Certificate, r.Key) }() // until it is closed
	known := make(map[string][]byte, len(r.Answers))
	for k, v := range r.Answers {
		known[k] = []byte(v)
	}
	missing := []byte(answer(http.StatusNotFound, "application/problem+json", `{"title":"Not Found","status":404}`))
	for {
		conn, err := l.Accept()
		if err != nil {
			if ctx.Err() != nil {
				return nil
			}
			return err
		}
		go serveFixed(conn, known, missing)
	}
}

// ServeHTTP implements http.Handler, for the listener with TLS.
func (r recording) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	_, _ = io.Copy(io.Discard, req.Body)
	res, err := http.ReadResponse(bufio.NewReader(strings.NewReader(r.Answers[req.Method+" "+req.URL.Path])), req)
	if err != nil { // there is none
		w.WriteHeader(http.StatusNotFound)
		return
	}
	maps.Copy(w.Header(), res.Header)
	w.WriteHeader(res.StatusCode)
	_, _ = io.Copy(w, res.Body)
	_ = res.Body.Close()
}

// serveFixed answers the requests of one connection.
func serveFixed(conn net.Conn, known map[string][]byte, missing []byte) {
	defer func() { _ = conn.Close() }()
	r := bufio.NewReaderSize(conn, 16<<10)
	for {
		key, length, err := readHead(r)
		if err != nil {
			return
		}
		if _, err := r.Discard(length); err != nil {
			return
		}
		if key == http.MethodPost+" "+livePath {
			serveLive(conn)
			return
		}
		bytes, ok := known[key]
		if !ok {
			bytes = missing
		}
		if _, err := conn.Write(bytes); err != nil {
			return
		}
	}
}

// serveLive answers with events until the caller leaves.
func serveLive(conn net.Conn) {
	if _, err := io.WriteString(conn, "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n"); err != nil {
		return
	}
	tick := time.NewTicker(liveEvery)
	defer tick.Stop()
	for ; ; <-tick.C {
		event := fmt.Sprintf("data: %d\n\n", time.Now().UnixNano())
		if _, err := fmt.Fprintf(conn, "%x\r\n%s\r\n", len(event), event); err != nil {
			return
		}
	}
}

// readHead reads a request's head: its method and path, and how long its body is.
func readHead(r *bufio.Reader) (key string, length int, err error) {
	line, err := r.ReadString('\n')
	if err != nil {
		return "", 0, err
	}
	method, rest, _ := strings.Cut(line, " ")
	target, _, _ := strings.Cut(rest, " ")
	path, _, _ := strings.Cut(target, "?")
	for {
		field, err := r.ReadSlice('\n')
		if err != nil {
			return "", 0, err
		}
		if len(field) <= len("\r\n") {
			return method + " " + path, length, nil
		}
		const name = "content-length:"
		switch {
		case len(field) > len(name) && strings.EqualFold(string(field[:len(name)]), name):
			if length, err = strconv.Atoi(strings.TrimSpace(string(field[len(name):]))); err != nil {
				return "", 0, err
			}
		case field[0]|' ' == 't' && strings.HasPrefix(strings.ToLower(string(field)), "transfer-encoding:"):
			return "", 0, errors.New("a body without a length")
		}
	}
}
