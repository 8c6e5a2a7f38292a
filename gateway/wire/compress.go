package wire

import (
	"net/http"

	"github.com/klauspost/compress/gzhttp"
	"github.com/klauspost/compress/gzip"
)

// MinCompressed is the minimum length of compressed responses in bytes.
const MinCompressed = 16 << 10

// Compress returns a handler that compresses long text responses of h with gzip for clients that accept it. Responses with a content coding
// and partial responses are not changed. Flushed headers are delayed, so h must not serve streams. Because of BREACH, h must not serve
// pages with secrets either.
func Compress(h http.Handler) http.Handler {
	wrap, err := gzhttp.NewWrapper(
		gzhttp.MinSize(MinCompressed), gzhttp.CompressionLevel(gzip.BestSpeed), gzhttp.EnableZstd(false), gzhttp.SuffixETag("-gzip"),
		gzhttp.ContentTypes([]string{"text/html", "text/css", "text/javascript", "application/json", "image/svg+xml"}),
	)
	if err != nil {
		panic(err) // cannot fail: the options are constant
	}
	return wrap(h)
}
