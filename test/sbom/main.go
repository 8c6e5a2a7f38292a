// Command sbom writes the bill of materials of a Go program in CycloneDX: the
// modules it was linked from, as the program itself names them.
//
//	go run ./test/sbom -version v1.2.3 bin/tollgate > tollgate.cdx.json
package main

import (
	"debug/buildinfo"
	"encoding/base64"
	"encoding/hex"
	"flag"
	"fmt"
	"io"
	"os"
	"runtime/debug"
	"strings"

	cdx "github.com/CycloneDX/cyclonedx-go"
)

func main() {
	version := flag.String("version", "", "version of the program")
	flag.Parse()
	if err := run(os.Stdout, *version, flag.Arg(0)); err != nil {
		fmt.Fprintln(os.Stderr, "sbom:", err)
		os.Exit(1)
	}
}

// run writes the bill of the program at path. It depends on the program alone: no
// time, no serial number.
func run(w io.Writer, version, path string) error {
	info, err := buildinfo.ReadFile(path)
	if err != nil {
		return err
	}
	bom := cdx.NewBOM()
	main := cdx.Component{
		BOMRef: "pkg:golang/" + info.Main.Path + "@" + version, Type: cdx.ComponentTypeApplication, Name: info.Main.Path, Version: version,
	}
	main.PackageURL = main.BOMRef
	bom.Metadata = &cdx.Metadata{Component: &main}
	std := "pkg:golang/std@" + strings.TrimPrefix(info.GoVersion, "go")
	components := []cdx.Component{{
		BOMRef: std, Type: cdx.ComponentTypeLibrary, Name: "std", Version: strings.TrimPrefix(info.GoVersion, "go"), PackageURL: std,
	}}
	for _, m := range info.Deps {
		c, err := component(m)
		if err != nil {
			return err
		}
		components = append(components, c)
	}
	refs := make([]string, len(components))
	for i, c := range components {
		refs[i] = c.BOMRef
	}
	bom.Components = &components
	bom.Dependencies = &[]cdx.Dependency{{Ref: main.BOMRef, Dependencies: &refs}}
	return cdx.NewBOMEncoder(w, cdx.BOMFileFormatJSON).SetPretty(true).Encode(bom)
}

// component is a module. Its hash is the one of go.sum: of the list of its files
// and their SHA-256.
func component(m *debug.Module) (cdx.Component, error) {
	if m.Replace != nil {
		m = m.Replace
	}
	url := "pkg:golang/" + m.Path + "@" + m.Version
	sum, err := base64.StdEncoding.DecodeString(strings.TrimPrefix(m.Sum, "h1:"))
	if err != nil {
		return cdx.Component{}, fmt.Errorf("%s: %w", m.Path, err)
	}
	return cdx.Component{
		BOMRef: url, Type: cdx.ComponentTypeLibrary, Name: m.Path, Version: m.Version, PackageURL: url,
		Hashes: &[]cdx.Hash{{Algorithm: cdx.HashAlgoSHA256, Value: hex.EncodeToString(sum)}},
	}, nil
}
