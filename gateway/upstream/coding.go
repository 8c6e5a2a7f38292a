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
	"slices"
	"strings"

	"github.com/andybalholm/brotli"
	"github.com/klauspost/compress/zstd"
)

// maxCodings is the maximum number of content codings of one response.
const maxCodings = 4

// decode removes the content codings (RFC 9110, section 8.4) of a response. If one of them is not supported, decode does not change the
// response.
func decode(res *http.Response) {
	codings := strings.FieldsFunc(strings.Join(res.Header.Values("Content-Encoding"), ","),
		func(r rune) bool { return r == ',' || r == ' ' || r == '\t' })
	if len(codings) == 0 || len(codings) > maxCodings {
		return
	}
	body := res.Body
	for _, coding := range slices.Backward(codings) { // the last coding was applied last
		switch coding = strings.ToLower(coding); coding {
		case "identity":
		case "gzip", "x-gzip", "deflate", "br", "zstd":
			body = &decoder{ReadCloser: body, coding: coding}
		default:
			return
		}
	}
	res.Header.Del("Content-Encoding")
	if body != res.Body {
		res.Body, res.ContentLength = body, -1
		res.Header.Del("Content-Length")
	}
}

// maxWindow is the largest zstd window that recipients must support (RFC 9659).
const maxWindow = 8 << 20

// inflate decodes the coding deflate, also without the zlib header, which some servers omit.
func inflate(in *bufio.Reader) (io.Reader, error) {
	const deflated, check = 8, 31 // RFC 1950, section 2.2
	head, err := in.Peek(2)
	if err == nil && head[0]&0xf == deflated && (int(head[0])<<8|int(head[1]))%check == 0 {
		return zlib.NewReader(in)
	}
	return flate.NewReader(in), nil
}

// decoder is a body without its content coding.
type decoder struct {
	io.ReadCloser
	coding string
	in     io.Reader // nil before the first read
	err    error
}

// open returns a reader that decodes coded.
func (d *decoder) open(coded *bufio.Reader) (io.Reader, error) {
	switch d.coding {
	case "deflate":
		return inflate(coded)
	case "br":
		return brotli.NewReader(coded), nil
	case "zstd":
		return zstd.NewReader(coded, zstd.WithDecoderConcurrency(1), zstd.WithDecoderLowmem(true), zstd.WithDecoderMaxWindow(maxWindow))
	}
	return gzip.NewReader(coded)
}

// Read implements io.Reader. It returns ErrUnreachable if the body is not validly coded.
func (d *decoder) Read(p []byte) (int, error) {
	if d.err != nil {
		return 0, d.err
	}
	if d.in == nil {
		coded := bufio.NewReader(d.ReadCloser)
		if _, d.err = coded.Peek(1); d.err != nil {
			return 0, d.err // an empty body has no coding
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

// codingError wraps a decoding error in ErrUnreachable.
func codingError(err error) error {
	if err == nil || errors.Is(err, ErrUnreachable) || errors.Is(err, ErrTimeout) || err == io.EOF { //nolint:errorlint // io.EOF is the end of the body
		return err
	}
	return fmt.Errorf("%w: content coding: %w", ErrUnreachable, err)
}
