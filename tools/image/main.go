// Command image writes the operator's image as a tarball for `docker load`, `ctr images import` and `crane push`,
// without a daemon or a network: it has no base image, since a static program needs little else.
//
// Each program has a layer of its own, so that registries and nodes keep the layers that a new version does not change.
// The image is reproducible: it contains no times and no names of users or machines.
//
// Usage: image [-most MB] REFERENCE OUT PROGRAM...
package main

import (
	"archive/tar"
	"bytes"
	"encoding/pem"
	"flag"
	"fmt"
	"io"
	"os"
	"path"
	"path/filepath"

	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	"golang.org/x/crypto/x509roots/fallback/bundle"
)

// nonroot is the user ID of distroless images, so that the image works for pods with runAsNonRoot.
const nonroot = 65532

// programs is the folder of the programs, and the PATH of the image.
const programs = "usr/local/bin"

func main() {
	most := flag.Float64("most", 0, "fail if the image has more than this number of MB (1,000,000 bytes) to pull (default: no limit)")
	flag.Parse()
	if flag.NArg() < 3 {
		fmt.Fprintln(os.Stderr, "usage: image [-most MB] REFERENCE OUT PROGRAM...")
		os.Exit(2)
	}
	if err := run(flag.Arg(0), flag.Arg(1), flag.Args()[2:], *most); err != nil {
		fmt.Fprintln(os.Stderr, "image:", err)
		os.Exit(1)
	}
}

func run(reference, out string, binaries []string, most float64) error {
	tag, err := name.NewTag(reference)
	if err != nil {
		return fmt.Errorf("parsing the reference: %w", err)
	}
	image, err := build(binaries)
	if err != nil {
		return err
	}
	if err := tarball.WriteToFile(out, tag, image); err != nil {
		return fmt.Errorf("writing %s: %w", out, err)
	}
	pulled, err := pulledBytes(image)
	if err != nil {
		return err
	}
	if megabytes := float64(pulled) / 1e6; most > 0 && megabytes > most {
		return fmt.Errorf("%s has %.1f MB to pull, but may have at most %.0f", out, megabytes, most)
	}
	digest, err := image.Digest()
	if err != nil {
		return fmt.Errorf("computing the digest: %w", err)
	}
	fmt.Printf("%s@%s: %.1f MB to pull, in %s\n", tag, digest, float64(pulled)/1e6, out)
	return nil
}

// build returns the image of the programs; the first one is its entrypoint.
func build(binaries []string) (v1.Image, error) {
	base, err := layer(system()...)
	if err != nil {
		return nil, err
	}
	layers := []v1.Layer{base}
	for _, binary := range binaries {
		content, err := os.ReadFile(binary)
		if err != nil {
			return nil, fmt.Errorf("reading a program: %w", err)
		}
		if err := static(content); err != nil {
			return nil, fmt.Errorf("%s: %w", binary, err)
		}
		added, err := layer(file{name: path.Join(programs, filepath.Base(binary)), mode: 0o755, content: content})
		if err != nil {
			return nil, err
		}
		layers = append(layers, added)
	}
	image, err := mutate.AppendLayers(empty.Image, layers...)
	if err != nil {
		return nil, fmt.Errorf("assembling the layers: %w", err)
	}
	config, err := image.ConfigFile()
	if err != nil {
		return nil, fmt.Errorf("reading the configuration: %w", err)
	}
	config = config.DeepCopy()
	config.OS, config.Architecture = "linux", architecture(binaries[0])
	config.Config = v1.Config{
		User:       fmt.Sprintf("%d:%d", nonroot, nonroot),
		WorkingDir: "/",
		Env:        []string{"PATH=/" + programs, "SSL_CERT_FILE=/" + certificates},
		Entrypoint: []string{filepath.Base(binaries[0])},
		Labels: map[string]string{
			"org.opencontainers.image.title":    "Muster",
			"org.opencontainers.image.licenses": "Apache-2.0",
		},
	}
	return mutate.ConfigFile(image, config)
}

// certificates is the file in which programs look for CA certificates.
const certificates = "etc/ssl/certs/ca-certificates.crt"

// file is a file of a layer. If it has no content and its name ends in /, it is a folder.
type file struct {
	name    string
	mode    int64
	content []byte
}

// system returns the files that programs expect: users, CA certificates, and a folder for temporary files.
func system() []file {
	var roots bytes.Buffer
	for root := range bundle.Roots() {
		// Writing to a buffer does not fail.
		_ = pem.Encode(&roots, &pem.Block{Type: "CERTIFICATE", Bytes: root.Certificate})
	}
	return []file{
		{name: "etc/", mode: 0o755},
		{name: "etc/group", mode: 0o644, content: fmt.Appendf(nil, "root:x:0:\nnonroot:x:%d:\n", nonroot)},
		{name: "etc/nsswitch.conf", mode: 0o644, content: []byte("hosts: files dns\n")},
		{name: "etc/passwd", mode: 0o644,
			content: fmt.Appendf(nil, "root:x:0:0:root:/:/sbin/nologin\nnonroot:x:%d:%d:nonroot:/:/sbin/nologin\n",
				nonroot, nonroot)},
		{name: certificates, mode: 0o644, content: roots.Bytes()},
		{name: "tmp/", mode: 0o1777},
	}
}

// layer returns a compressed layer of the files. They belong to root, so that the programs cannot change them.
func layer(files ...file) (v1.Layer, error) {
	var packed bytes.Buffer
	w := tar.NewWriter(&packed)
	for _, f := range files {
		header := &tar.Header{Name: f.name, Mode: f.mode, Size: int64(len(f.content)), Typeflag: tar.TypeReg,
			Format: tar.FormatPAX}
		if f.content == nil {
			header.Typeflag = tar.TypeDir
		}
		if err := w.WriteHeader(header); err != nil {
			return nil, fmt.Errorf("packing %s: %w", f.name, err)
		}
		if _, err := w.Write(f.content); err != nil {
			return nil, fmt.Errorf("packing %s: %w", f.name, err)
		}
	}
	if err := w.Close(); err != nil {
		return nil, fmt.Errorf("packing a layer: %w", err)
	}
	return tarball.LayerFromOpener(func() (io.ReadCloser, error) {
		return io.NopCloser(bytes.NewReader(packed.Bytes())), nil
	})
}

// pulledBytes returns the size of the compressed layers, configuration and manifest: what a node without any layer of
// the image downloads.
func pulledBytes(image v1.Image) (int64, error) {
	manifest, err := image.Manifest()
	if err != nil {
		return 0, fmt.Errorf("reading the manifest: %w", err)
	}
	total, err := image.Size()
	if err != nil {
		return 0, fmt.Errorf("measuring the manifest: %w", err)
	}
	total += manifest.Config.Size
	for _, l := range manifest.Layers {
		total += l.Size
	}
	return total, nil
}
