package main

import (
	"bufio"
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"
)

// task is the input of the load. It opens its connections, sends Warm on each and says that
// it is warm. Each time that it is told how long, it sends for so long and tells what all came to.
type task struct {
	Addr string `json:"addr"`
	// CA is the file of the certificate that the server's is held against; without
	// one there is no TLS.
	CA string `json:"ca,omitempty"`
	// Request is the bytes of one request, with marks for the parts that differ from one to
	// the next.
	Request string `json:"request"`
	// Status is the expected one; others are counted as failures.
	Status int `json:"status"`
	// Live says that the answer is events that do not end: each counts as a request
	// that was due when it was sent.
	Live bool `json:"live,omitempty"`
	// Without is what an expected answer does not contain, if not empty.
	Without string `json:"without,omitempty"`
	// First is the number of the first request.
	First       int64 `json:"first"`
	Connections int   `json:"connections"`
	// Warm is how long requests are sent before the measurement; without it, one
	// is sent on each connection as soon as it is open.
	Warm time.Duration `json:"warm"`
	// Rate is how many requests are due each second; 0 sends the next when the last
	// is answered.
	Rate int `json:"rate,omitempty"`
}

// outcome has the figures of the load.
type outcome struct {
	Requests int           `json:"requests"`
	Failed   int           `json:"failed"`
	Took     time.Duration `json:"took"`
	// Latency is the quantiles of the times from when a request was due to the end
	// of its answer.
	Latency struct {
		P50  time.Duration `json:"p50"`
		P99  time.Duration `json:"p99"`
		P999 time.Duration `json:"p999"`
	} `json:"latency"`
	// Example is an answer that was not expected.
	Example string `json:"example,omitempty"`
}

// Marks in requests: a caller's number of three digits, and a request's of eight.
const (
	callerMark  = "@@@"
	requestMark = "########"
)

// callers is how many keys there are.
const callers = 100

// sendLoad is the role load.
func sendLoad(ctx context.Context, stdin io.Reader, stdout io.Writer) error {
	in, out := json.NewDecoder(stdin), json.NewEncoder(stdout)
	var t task
	if err := in.Decode(&t); err != nil {
		return err
	}
	l := load{task: t}
	l.next.Store(t.First)
	defer l.close()
	if err := l.dial(ctx); err != nil {
		return err
	}
	var warm outcome
	if t.Warm > 0 {
		var err error
		if warm, err = l.send(ctx, t.Warm, 0); err != nil {
			return err
		}
	}
	if err := out.Encode(warm); err != nil {
		return err
	}
	for _, c := range l.clients {
		c.done, c.failed = nil, 0
	}
	l.took = 0
	for {
		var long time.Duration
		if err := in.Decode(&long); err != nil {
			if errors.Is(err, io.EOF) {
				return nil
			}
			return err
		}
		result, err := l.send(ctx, long, t.Rate)
		if err != nil {
			return err
		}
		if err := out.Encode(result); err != nil {
			return err
		}
	}
}

// load is connections that send.
type load struct {
	task
	clients []*client
	next    atomic.Int64
	// took is how long requests were sent.
	took time.Duration
}

// client is one connection, and the request in its own copy.
type client struct {
	conn    net.Conn
	r       *bufio.Reader
	request []byte
	callers []int
	numbers []int
	done    []time.Duration
	// events reads a live answer, nil before it began.
	events  *bufio.Reader
	failed  int
	example string
}

func (l *load) dial(ctx context.Context) error {
	var d interface {
		DialContext(ctx context.Context, network, addr string) (net.Conn, error)
	} = new(net.Dialer)
	if l.CA != "" {
		pem, err := os.ReadFile(l.CA)
		if err != nil {
			return err
		}
		pool := x509.NewCertPool()
		pool.AppendCertsFromPEM(pem)
		d = &tls.Dialer{Config: &tls.Config{RootCAs: pool, MinVersion: tls.VersionTLS13}}
	}
	for range l.Connections {
		conn, err := d.DialContext(ctx, "tcp", l.Addr)
		if err != nil {
			return err
		}
		c := &client{
			conn: conn, r: bufio.NewReaderSize(conn, 4<<10), request: []byte(l.Request),
			callers: places(l.Request, callerMark), numbers: places(l.Request, requestMark),
		}
		l.clients = append(l.clients, c)
		if l.Warm == 0 {
			if _, err := c.exchange(l.next.Add(1), &l.task); err != nil {
				return err
			}
		}
	}
	return nil
}

func (l *load) close() {
	for _, c := range l.clients {
		_ = c.conn.Close()
	}
}

// places finds every mark.
func places(text, mark string) (at []int) {
	for i := 0; ; i += len(mark) {
		j := strings.Index(text[i:], mark)
		if j < 0 {
			return at
		}
		i += j
		at = append(at, i)
	}
}

// send sends for a time, on every connection at least once. It returns what all so far came to.
func (l *load) send(ctx context.Context, long time.Duration, rate int) (outcome, error) {
	begin := time.Now()
	first := l.next.Load()
	group, ctx := errgroup.WithContext(ctx)
	for _, c := range l.clients {
		group.Go(func() error {
			for sent := 0; ; sent++ {
				n := l.next.Add(1) - 1
				due := time.Now()
				if rate > 0 {
					due = begin.Add(time.Duration(n-first) * time.Second / time.Duration(rate))
				}
				if sent > 0 && due.Sub(begin) >= long || ctx.Err() != nil {
					return ctx.Err()
				}
				due = await(ctx, due)
				told, err := c.exchange(n, &l.task)
				if err != nil {
					return err
				}
				if l.Live {
					due = told
				}
				c.done = append(c.done, time.Since(due))
			}
		})
	}
	err := group.Wait()
	l.took += time.Since(begin)
	return l.sum(), err
}

// await waits until a request is due and returns when it really was: a client that
// is late lets the request wait, but one that overslept has not sent any.
func await(ctx context.Context, due time.Time) time.Time {
	left := time.Until(due)
	if left <= 0 {
		return due
	}
	t := time.NewTimer(left)
	defer t.Stop()
	select {
	case <-t.C:
	case <-ctx.Done():
	}
	return time.Now()
}

func (l *load) sum() outcome {
	o := outcome{Took: l.took}
	var all []time.Duration
	for _, c := range l.clients {
		all = append(all, c.done...)
		o.Failed += c.failed
		if c.example != "" {
			o.Example = c.example
		}
	}
	slices.Sort(all)
	o.Requests = len(all)
	if len(all) > 0 {
		at := func(q float64) time.Duration { return all[int(q*float64(len(all)-1))] }
		o.Latency.P50, o.Latency.P99, o.Latency.P999 = at(0.5), at(0.99), at(0.999)
	}
	return o
}

// bodies are buffers for bytes that are read only to be counted.
var bodies = sync.Pool{New: func() any { return new(bytes.Buffer) }}

// number makes the request that of a number.
func (c *client) number(n int64) {
	for _, at := range c.callers {
		digits(c.request[at:at+len(callerMark)], n%callers)
	}
	for _, at := range c.numbers {
		digits(c.request[at:at+len(requestMark)], n)
	}
}

// exchange sends the request of a number and reads its answer. Of a live answer it
// reads the next event, and returns when that was sent.
func (c *client) exchange(number int64, t *task) (sent time.Time, err error) {
	if !t.Live {
		return sent, c.answer(number, t)
	}
	if c.events == nil {
		c.number(number)
		if _, err := c.conn.Write(c.request); err != nil {
			return sent, err
		}
		res, err := http.ReadResponse(c.r, nil) //nolint:bodyclose // it ends with the connection
		if err != nil || res.StatusCode != t.Status {
			return sent, errors.Join(err, fmt.Errorf("no stream: %+v", res))
		}
		c.events = bufio.NewReader(res.Body)
	}
	for {
		line, err := c.events.ReadString('\n')
		if err != nil {
			return sent, err
		}
		if at, ok := strings.CutPrefix(strings.TrimSpace(line), "data: "); ok {
			ns, err := strconv.ParseInt(at, 10, 64)
			return time.Unix(0, ns), err
		}
	}
}

// answer sends the request of a number and reads its answer to the end.
func (c *client) answer(number int64, t *task) error {
	c.number(number)
	if _, err := c.conn.Write(c.request); err != nil {
		return err
	}
	res, err := http.ReadResponse(c.r, nil)
	if err != nil {
		return err
	}
	defer func() { _ = res.Body.Close() }()
	if res.StatusCode == t.Status && t.Without == "" {
		_, err = io.Copy(io.Discard, res.Body)
		return err
	}
	b, _ := bodies.Get().(*bytes.Buffer)
	defer bodies.Put(b)
	b.Reset()
	if _, err := b.ReadFrom(res.Body); err != nil {
		return err
	}
	if res.StatusCode == t.Status && !bytes.Contains(b.Bytes(), []byte(t.Without)) {
		return nil
	}
	c.failed++
	c.example = fmt.Sprintf("%d, want %d: %.300s", res.StatusCode, t.Status, b)
	if res.Close {
		return errors.New("answered " + c.example + ", and closed")
	}
	return nil
}

// digits writes a number's last digits.
func digits(to []byte, n int64) {
	for i := len(to) - 1; i >= 0; i-- {
		to[i] = '0' + byte(n%10)
		n /= 10
	}
}

// sender is the load as a process, warm.
type sender struct {
	*process
	in  *json.Encoder
	out *json.Decoder
	r   io.Closer
	// outcome has the figures of all that was sent since it is warm.
	outcome outcome
}

// warm starts the load and lets it become warm.
func (m machine) warm(ctx context.Context, t task) (*sender, error) {
	r, w, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	cmd := m.command(ctx, around, self, "load")
	cmd.Stdout = w
	p, err := m.start("load", cmd, t)
	_ = w.Close() // the process has it
	if err != nil {
		_ = r.Close()
		return nil, err
	}
	s := &sender{process: p, in: json.NewEncoder(p.stdin), out: json.NewDecoder(bufio.NewReader(r)), r: r}
	if err := s.read(); err != nil {
		s.stop()
		return nil, err
	}
	return s, nil
}

// send sends for a time.
func (s *sender) send(long time.Duration) error {
	if err := s.in.Encode(long); err != nil {
		return err
	}
	return s.read()
}

// read reads the figures so far.
func (s *sender) read() error {
	err := s.out.Decode(&s.outcome)
	switch {
	case errors.Is(err, io.EOF): // it ended early, and said why
		return errors.New("load: " + s.said())
	case err == nil && s.outcome.unusable():
		return &unexpectedError{s.outcome}
	}
	return err
}

func (s *sender) stop() {
	s.process.stop()
	_ = s.r.Close()
}

// unusable reports whether too many answers were not the expected ones. Some may:
// the first call of a key that then has none left, one on a machine that is busy.
func (o outcome) unusable() bool { return o.Failed*10 > o.Requests }

// unexpectedError is an answer other than expected.
type unexpectedError struct{ outcome }

func (e *unexpectedError) Error() string {
	return strconv.Itoa(e.Failed) + " of " + strconv.Itoa(e.Requests) + " answered " + e.Example
}
