package wire

import (
	"net/http"

	"github.com/klauspost/compress/gzhttp"
	"github.com/klauspost/compress/gzip"
)

// MinCompressed is the length of the shortest response that is compressed, in bytes.
const MinCompressed = 16 << 10

// Compress returns a handler that sends the long texts of h with gzip to clients that accept it. It leaves responses as they are that
// have a content coding or are a range. It holds back flushed headers, so h must not be one of streams; nor of pages with a secret, whose
// compressed length tells about it (BREACH).
func Compress(h http.Handler) http.Handler {
	wrap, err := gzhttp.NewWrapper(
		gzhttp.MinSize(MinCompressed), gzhttp.CompressionLevel(gzip.BestSpeed), gzhttp.EnableZstd(false), gzhttp.SuffixETag("-gzip"),
		gzhttp.ContentTypes([]string{"text/html", "text/css", "text/javascript", "application/json", "image/svg+xml"}),
	)
	if err != nil {
		panic(err) // the options are constants
	}
	return wrap(h)
}
