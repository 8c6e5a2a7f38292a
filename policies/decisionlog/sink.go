package decisionlog

import (
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"strings"
	"time"
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

// fileSink writes to a file and puts it aside when it is full. When another program
// has done so, it begins a new one.
type fileSink struct {
	cfg  File
	f    *os.File
	size int64
}

func openFile(cfg File) (*fileSink, error) {
	if cfg.MaxBytes == 0 {
		cfg.MaxBytes = 100_000_000
	}
	if cfg.Keep == 0 {
		cfg.Keep = 5
	}
	s := &fileSink{cfg: cfg}
	return s, s.open()
}

func (s *fileSink) open() error {
	f, err := os.OpenFile(s.cfg.Path, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	info, err := f.Stat()
	if err != nil {
		return errors.Join(err, f.Close())
	}
	s.f, s.size = f, info.Size()
	return nil
}

func (*fileSink) name() string { return "file" }

func (s *fileSink) write(_ context.Context, events [][]byte) error {
	if err := s.follow(); err != nil {
		return err
	}
	text := lines(events)
	if s.size > 0 && s.size+int64(len(text)) > s.cfg.MaxBytes {
		if err := s.rotate(); err != nil {
			return err
		}
	}
	n, err := s.f.Write(text)
	s.size += int64(n)
	return err
}

// follow opens the file anew if Path no longer names the one that is open.
func (s *fileSink) follow() error {
	open, err := s.f.Stat()
	if err != nil {
		return errors.Join(err, s.open()) // it could not be opened before
	}
	if there, err := os.Stat(s.cfg.Path); err == nil && os.SameFile(open, there) {
		s.size = there.Size() // it may have been cut
		return nil
	}
	return errors.Join(s.f.Close(), s.open())
}

// rotate renames Path to Path.1, that to Path.2, and so on; the last goes.
func (s *fileSink) rotate() error {
	if err := s.f.Close(); err != nil {
		return err
	}
	for i := s.cfg.Keep; i > 0; i-- {
		from := s.cfg.Path
		if i > 1 {
			from = fmt.Sprintf("%s.%d", s.cfg.Path, i-1)
		}
		err := os.Rename(from, fmt.Sprintf("%s.%d", s.cfg.Path, i))
		if err != nil && !errors.Is(err, os.ErrNotExist) {
			return errors.Join(err, s.open())
		}
	}
	return s.open()
}

// Close closes the file.
func (s *fileSink) Close() error { return s.f.Close() }

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
	timeout := s.cfg.Timeout
	if timeout == 0 {
		timeout = 10 * time.Second
	}
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, s.cfg.URL, bytes.NewReader(body))
	if err != nil {
		return err
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Content-Encoding", "gzip")
	if s.cfg.TokenFile != "" {
		token, err := os.ReadFile(s.cfg.TokenFile)
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
