package hostile

import (
	"bytes"
	"compress/gzip"
	"net/http"
	"testing"
)

// TestCodedAnswers: an answer that the gateway did not ask for and cannot read, it does
// not pass off as JSON.
func TestCodedAnswers(t *testing.T) {
	t.Parallel()
	var coded bytes.Buffer
	z := gzip.NewWriter(&coded)
	if _, err := z.Write(make([]byte, 1<<20)); err != nil {
		t.Fatal(err)
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	s := open(t, answering(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		w.Header().Set("Content-Encoding", "gzip")
		_, _ = w.Write(coded.Bytes())
	}))
	for _, target := range []string{"/v2/pods", "/v2/pods/pod1"} {
		if a := s.ask(t, request("GET", target, k1, "")); a.Status != http.StatusBadGateway {
			t.Errorf("%s: answer %d with %d bytes, want 502", target, a.Status, len(a.Body))
		}
	}
}

// TestReadsThatAreNoReads: a change is not answered with the success of the
// read before it.
func TestReadsThatAreNoReads(t *testing.T) {
	t.Parallel()
	s := open(t, answering(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodGet {
			w.WriteHeader(http.StatusNoContent)
			return
		}
		obliging(w, r)
	}))
	a := s.ask(t, request("PATCH", "/v2/pods/pod1", k1, `{"name":"b"}`))
	if a.Status != http.StatusBadGateway {
		t.Errorf("answer %d, want 502: nothing was changed", a.Status)
	}
	if n := changes(s.recorder.take()); n != 0 {
		t.Errorf("%d changes at the platform, want none", n)
	}
}
