package envoy

import (
	tlsv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/transport_sockets/tls/v3"
	discoveryv3 "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	"google.golang.org/protobuf/types/known/anypb"
)

// Files holds the paths of PEM files on Envoy's machine: Envoy's certificate chain, its private key, and the certificates of the gateways'
// certificate authority.
type Files struct{ Certificate, Key, CA string }

// secrets returns the files as Envoy secrets.
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

// Secrets returns the contents of the JSON files that the directory [Peer.Secrets] must contain, by file name. Each file defines one Envoy
// secret, which refers to PEM files by the paths in f. Envoy reloads the PEM files when a file is moved into one of their directories, as
// tools that rotate certificates do. A watched_directory would limit this to one directory, but the key may be in a different one.
func (f Files) Secrets() (map[string]string, error) {
	texts := make(map[string]string)
	for _, s := range f.secrets() {
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
