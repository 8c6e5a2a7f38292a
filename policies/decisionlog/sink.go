package decisionlog

import (
	"bytes"
	"cmp"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"

	"github.com/tollgate-dev/tollgate/config/files"
	"github.com/tollgate-dev/tollgate/policies/logfile"
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

// streamSink writes to a stream it does not own.
type streamSink struct{ w io.Writer }

func (*streamSink) name() string { return "stdout" }

func (s *streamSink) write(_ context.Context, events [][]byte) error {
	if len(events) == 0 {
		return nil
	}
	_, err := s.w.Write(lines(events))
	return err
}

// Close leaves the stream alone.
func (*streamSink) Close() error { return nil }

// fileSink writes to a file of its own.
type fileSink struct{ *logfile.Writer }

func (fileSink) name() string { return "file" }

func (s fileSink) write(_ context.Context, events [][]byte) error { return s.WriteLines(lines(events)) }

// serviceSink posts batches.
type serviceSink struct {
	cfg    Service
	client *http.Client
}

func (*serviceSink) name() string { return "service" }

// tries is how often a batch is posted before it counts as failed.
const tries = 3

func (s *serviceSink) write(ctx context.Context, events [][]byte) error {
	if len(events) == 0 {
		return nil
	}
	body, err := packed(events)
	if err != nil {
		return err
	}
	for i := range tries {
		if i > 0 {
			timer := time.NewTimer(time.Second << (i - 1))
			select {
			case <-timer.C:
			case <-ctx.Done():
				timer.Stop()
				return errors.Join(err, context.Cause(ctx))
			}
		}
		if err = s.post(ctx, body); err == nil {
			return nil
		}
	}
	return err
}

// packed is a gzipped JSON array of encoded events.
func packed(events [][]byte) (body []byte, err error) {
	var out bytes.Buffer
	zip := gzip.NewWriter(&out)
	_, err1 := zip.Write([]byte{'['})
	_, err2 := zip.Write(bytes.Join(events, []byte{','}))
	_, err3 := zip.Write([]byte{']'})
	err = errors.Join(err1, err2, err3, zip.Close())
	return out.Bytes(), err
}

func (s *serviceSink) post(ctx context.Context, body []byte) error {
	timeout := cmp.Or(s.cfg.Timeout, 10*time.Second)
	ctx, cancel := context.WithTimeout(ctx, timeout)
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
			return fmt.Errorf("token: %w", err)
		}
		req.Header.Set("Authorization", "Bearer "+strings.TrimSpace(string(token)))
	}
	resp, err := s.client.Do(req)
	if err != nil {
		return err
	}
	defer func() { _ = resp.Body.Close() }()
	if _, err := io.Copy(io.Discard, io.LimitReader(resp.Body, 64<<10)); err != nil {
		return err
	}
	if resp.StatusCode < 200 || resp.StatusCode > 299 {
		return fmt.Errorf("the service answered %d", resp.StatusCode)
	}
	return nil
}

// Close has nothing to close.
func (*serviceSink) Close() error { return nil }
