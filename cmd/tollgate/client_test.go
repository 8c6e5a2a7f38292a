package main

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

// An untrusted certificate is not reported as a wrong address.
func TestUntrustedCertificateOfAGateway(t *testing.T) {
	srv := httptest.NewTLSServer(http.NotFoundHandler())
	defer srv.Close()
	err := (&adminClient{base: srv.URL}).get(t.Context(), "/admin/status", nil, nil)
	if err == nil || !strings.HasPrefix(err.Error(), "cannot trust "+srv.URL) || !strings.Contains(err.Error(), "SSL_CERT_FILE") {
		t.Errorf("error = %v, want one about the certificate", err)
	}
}
