package upstream

import (
	"bufio"
	"compress/flate"
	"compress/gzip"
	"compress/zlib"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
)

// decode removes a content coding (RFC 9110, section 8.4.1) from an answer, if it knows the coding.
func decode(res *http.Response) {
	values := res.Header.Values("Content-Encoding")
	if len(values) != 1 {
		return
	}
	d := &decoding{ReadCloser: res.Body}
	switch strings.ToLower(strings.TrimSpace(values[0])) {
	case "gzip", "x-gzip":
		d.open = func(in *bufio.Reader) (io.Reader, error) { return gzip.NewReader(in) }
	case "deflate":
		d.open = inflate
	default:
		return
	}
	res.Body, res.ContentLength = d, -1
	res.Header.Del("Content-Encoding")
	res.Header.Del("Content-Length")
}

// inflate reads the coding deflate, which some servers send without the header of zlib.
func inflate(in *bufio.Reader) (io.Reader, error) {
	const deflated, check = 8, 31 // RFC 1950, section 2.2
	head, err := in.Peek(2)
	if err == nil && head[0]&0xf == deflated && (int(head[0])<<8|int(head[1]))%check == 0 {
		return zlib.NewReader(in)
	}
	return flate.NewReader(in), nil
}

// decoding is a body without its content coding.
type decoding struct {
	io.ReadCloser
	open func(*bufio.Reader) (io.Reader, error)
	in   io.Reader // nil before the first read
	err  error
}

// Read implements io.Reader. The error of a body that is not in its coding is ErrUnreachable.
func (d *decoding) Read(p []byte) (int, error) {
	if d.err != nil {
		return 0, d.err
	}
	if d.in == nil {
		coded := bufio.NewReader(d.ReadCloser)
		if _, d.err = coded.Peek(1); d.err != nil {
			return 0, d.err // a body without content has no coding either
		}
		if d.in, d.err = d.open(coded); d.err != nil {
			d.err = codingError(d.err)
			return 0, d.err
		}
	}
	n, err := d.in.Read(p)
	if d.err = codingError(err); d.err != nil {
		return n, d.err
	}
	return n, nil
}

// codingError returns an error of reading a coding as an error of this package.
func codingError(err error) error {
	if err == nil || errors.Is(err, ErrUnreachable) || errors.Is(err, ErrTimeout) || err == io.EOF { //nolint:errorlint // io.EOF is the end
		return err
	}
	return fmt.Errorf("%w: the content coding: %w", ErrUnreachable, err)
}
