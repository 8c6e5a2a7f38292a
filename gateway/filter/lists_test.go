package filter

import (
	"bytes"
	"context"
	"errors"
	"io"
	"strings"
	"testing"

	"github.com/tollgate-dev/tollgate/gateway/overload"
)

// TestListsOfUnknownLength: a list takes what it holds once it is read, whether its length was known or not; one that may be of any
// length waits for all that an organisation can hold; and the answer keeps its part until it is sent.
func TestListsOfUnknownLength(t *testing.T) {
	const size = 60 << 20 // of 80
	for _, tt := range []struct{ length, want int64 }{
		{smallList - 1, 0}, {smallList + 1, translatedSize * (smallList + 1)}, {unknownList + 1, translatedSize * (unknownList + 1)}, {20 << 20, size},
	} {
		memory := overload.NewPool(80<<20, 1)
		ex := &Exchange{Translation: Translation{lists: &memoryUse{pool: memory, factor: translatedSize}}}
		text, err := ex.readUnknown(t.Context(), io.NopCloser(strings.NewReader(strings.Repeat("x", int(tt.length)))))
		if err != nil || int64(len(text)) != tt.length || len(bytes.Trim(text, "x")) > 0 {
			t.Fatalf("of %d bytes %d were read: %v", tt.length, len(text), err)
		}
		if got := ex.Translation.lists.bytes.Load(); got != tt.want {
			t.Errorf("a list of %d bytes takes %d, want %d", tt.length, got, tt.want)
		}
		ex.Translation.lists.shrinkTo(1000)
		if left := min(tt.want, 1000); !memory.TryAcquire("", size-left) || left > 0 && memory.TryAcquire("", 1) {
			t.Errorf("an answer of 1000 bytes does not keep %d", left)
		}
		ex.ReleaseMemory()
		if tt.want > 0 && !memory.TryAcquire("", 1000) {
			t.Error("a sent answer has memory")
		}
	}
}

// TestLargeListWaits: a list that turns out to be large is not read on while another has the memory.
func TestLargeListWaits(t *testing.T) {
	memory := overload.NewPool(80<<20, 1)
	other := &memoryUse{pool: memory}
	if _, err := other.wait(t.Context(), 1); err != nil {
		t.Fatal(err)
	}
	ctx, leave := context.WithCancel(t.Context())
	leave()
	ex, body := &Exchange{Translation: Translation{lists: &memoryUse{pool: memory, factor: translatedSize}}}, strings.NewReader(strings.Repeat("x", 4<<20))
	if _, err := ex.readUnknown(ctx, io.NopCloser(body)); !errors.Is(err, context.Canceled) || body.Len() < 3<<20 {
		t.Errorf("%v with %d bytes left, want %v and 3 MB", err, body.Len(), context.Canceled)
	}
}
