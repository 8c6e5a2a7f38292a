package envoy

import (
	"path"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	tlsv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/transport_sockets/tls/v3"
	discoveryv3 "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	"google.golang.org/protobuf/types/known/anypb"
)

// Files are on an Envoy's machine, in PEM: its certificate chain and private key, and the
// certificates of the gateways' authority.
type Files struct{ Certificate, Key, CA string }

// secrets are the files as secrets.
func (f Files) secrets() []*tlsv3.Secret {
	return []*tlsv3.Secret{
		{Name: bootstrapClient, Type: &tlsv3.Secret_TlsCertificate{TlsCertificate: &tlsv3.TlsCertificate{
			CertificateChain: fileSource(f.Certificate), PrivateKey: fileSource(f.Key),
		}}},
		{Name: bootstrapCA, Type: &tlsv3.Secret_ValidationContext{ValidationContext: &tlsv3.CertificateValidationContext{
			TrustedCa: fileSource(f.CA),
		}}},
	}
}

// Secrets returns the files of the directory that [Peer.Secrets] names, as JSON by name:
// Envoy takes one secret of a file. It reads the files again when one is moved into their
// directories, as tools that replace certificates do.
func (f Files) Secrets() (map[string]string, error) {
	texts := make(map[string]string)
	for _, s := range f.secrets() {
		if c := s.GetTlsCertificate(); c != nil {
			c.WatchedDirectory = &corev3.WatchedDirectory{Path: path.Dir(f.Certificate)}
		} else {
			s.GetValidationContext().WatchedDirectory = &corev3.WatchedDirectory{Path: path.Dir(f.CA)}
		}
		b := new(builder)
		response := &discoveryv3.DiscoveryResponse{Resources: []*anypb.Any{b.pack(s)}}
		if b.err != nil {
			return nil, b.err
		}
		if err := validate(response); err != nil {
			return nil, err
		}
		text, err := indented(response)
		if err != nil {
			return nil, err
		}
		texts[secretFile(s.GetName())] = text
	}
	return texts, nil
}

func secretFile(secret string) string { return secret + ".json" }
