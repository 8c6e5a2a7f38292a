package wire

import (
	"net/http"

	"github.com/klauspost/compress/gzhttp"
	"github.com/klauspost/compress/gzip"
)

// MinCompressed is the minimum length, in bytes, of responses that [Compress] compresses.
const MinCompressed = 16 << 10

// Compress returns a handler that compresses long text responses of h with gzip if the client accepts gzip. It does not change partial
// responses and responses that already have a content coding. The handler h must not serve streams, because Compress delays flushed data,
// and must not serve pages with secrets, because of the BREACH attack.
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
