package decisionlog

import (
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/tollgate-dev/tollgate/config/egress"
	"github.com/tollgate-dev/tollgate/config/files"
	"github.com/tollgate-dev/tollgate/policies/logfile"
	"github.com/tollgate-dev/tollgate/policies/policyconfig"
)

// lines joins events, one per line.
func lines(events [][]byte) []byte {
	var b bytes.Buffer
	for _, e := range events {
		b.Write(e)
		b.WriteByte('\n')
	}
	return b.Bytes()
}

// streamSink writes to a stream that it does not own.
type streamSink struct{ w io.Writer }

func (*streamSink) name() string { return "stdout" }

func (s *streamSink) write(_ context.Context, events [][]byte) error {
	if len(events) == 0 {
		return nil
	}
	n, err := s.w.Write(lines(events))
	if err != nil && n == 0 { // otherwise a retry would continue an incomplete line
		err = &laterError{error: err}
	}
	return err
}

// Close does nothing; the stream stays open.
func (*streamSink) Close() error { return nil }

// fileSink writes to its own file.
type fileSink struct{ *logfile.Writer }

func (fileSink) name() string { return "file" }

func (s fileSink) write(_ context.Context, events [][]byte) error {
	if err := s.WriteLines(lines(events)); err != nil {
		return &laterError{error: err}
	}
	return nil
}

// serviceSink sends batches to an HTTP service.
type serviceSink struct {
	cfg    policyconfig.Service
	client *http.Client
}

func (*serviceSink) name() string { return "service" }

// laterError is a failure after which the same events can be written again.
type laterError struct {
	error
	// after is the delay requested by the service, or 0.
	after time.Duration
}

func (s *serviceSink) write(ctx context.Context, events [][]byte) error {
	if len(events) == 0 {
		return nil
	}
	body, err := packed(events)
	if err != nil {
		return err
	}
	return s.post(ctx, body)
}

// packed returns a gzipped JSON array of encoded events.
func packed(events [][]byte) (body []byte, err error) {
	var out bytes.Buffer
	zip := gzip.NewWriter(&out)
	_, err = fmt.Fprintf(zip, "[%s]", bytes.Join(events, []byte{','}))
	err = errors.Join(err, zip.Close())
	return out.Bytes(), err
}

// sendTimeout limits one request to the service.
const sendTimeout = 10 * time.Second

func (s *serviceSink) post(ctx context.Context, body []byte) error {
	ctx, cancel := context.WithTimeout(ctx, sendTimeout)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, s.cfg.URL, bytes.NewReader(body))
	if err != nil {
		return err
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Content-Encoding", "gzip")
	if !s.cfg.TokenFile.IsZero() {
		token, err := s.cfg.TokenFile.Read(files.MaxToken)
		if err != nil {
			return &laterError{error: fmt.Errorf("token: %w", err)}
		}
		req.Header.Set("Authorization", "Bearer "+strings.TrimSpace(string(token)))
	}
	resp, err := s.client.Do(req)
	if err != nil {
		if e, ok := errors.AsType[*url.Error](err); ok {
			err = e.Err // without the URL, which may contain a token
		}
		return &laterError{error: err}
	}
	defer func() { _ = resp.Body.Close() }()
	if _, err := io.Copy(io.Discard, io.LimitReader(resp.Body, 64<<10)); err != nil {
		return &laterError{error: err}
	}
	err = fmt.Errorf("service responded with status %d", resp.StatusCode)
	switch code := resp.StatusCode; {
	case code >= 200 && code <= 299:
		return nil
	case code == http.StatusBadRequest, code == http.StatusRequestEntityTooLarge, code == http.StatusUnprocessableEntity:
		return err // a retry would be rejected again
	}
	return &laterError{err, egress.RetryAfter(resp.Header, time.Now())}
}

// Close does nothing.
func (*serviceSink) Close() error { return nil }
