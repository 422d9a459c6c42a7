package main

import (
	"archive/tar"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
)

// program builds a program that does nothing and returns its path.
func program(t *testing.T, name string, environment ...string) string {
	t.Helper()
	dir := t.TempDir()
	source := filepath.Join(dir, "main.go")
	if err := os.WriteFile(source, []byte("package main\n\nfunc main() {}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	out := filepath.Join(dir, name)
	command := exec.Command("go", "build", "-o", out, source)
	command.Env = append(os.Environ(), environment...)
	if text, err := command.CombinedOutput(); err != nil {
		t.Fatalf("building a program: %v\n%s", err, text)
	}
	return out
}

// TestImageRunsTheFirstProgramAsNonRoot checks the configuration and files of an image of two programs, and that the
// same programs give the same image again.
func TestImageRunsTheFirstProgramAsNonRoot(t *testing.T) {
	first, second := program(t, "first", "CGO_ENABLED=0", "GOOS=linux"),
		program(t, "second", "CGO_ENABLED=0", "GOOS=linux")
	out := filepath.Join(t.TempDir(), "image.tar")
	if err := run("example/first:v1", out, []string{first, second}, 10); err != nil {
		t.Fatal(err)
	}
	image, err := tarball.ImageFromPath(out, nil)
	if err != nil {
		t.Fatal(err)
	}
	config, err := image.ConfigFile()
	if err != nil {
		t.Fatal(err)
	}
	if config.Config.User != "65532:65532" || !slices.Equal(config.Config.Entrypoint, []string{"first"}) ||
		config.OS != "linux" || config.Architecture != runtime.GOARCH {
		t.Errorf("the image runs %q as %q on %s/%s, want [first] as 65532:65532 on linux/%s",
			config.Config.Entrypoint, config.Config.User, config.OS, config.Architecture, runtime.GOARCH)
	}
	files := contents(t, image)
	for name, mode := range map[string]int64{"usr/local/bin/first": 0o755, "usr/local/bin/second": 0o755,
		"etc/passwd": 0o644, "tmp": 0o1777} {
		if files[name] == nil || files[name].Mode != mode || files[name].Uid != 0 {
			t.Errorf("%s is %+v, want a file of root with mode %o", name, files[name], mode)
		}
	}
	if certificates := files["etc/ssl/certs/ca-certificates.crt"]; certificates == nil || certificates.Size < 100_000 {
		t.Errorf("the file of CA certificates is %+v, want at least 100 kB", certificates)
	}
	for name := range files {
		if strings.Contains(name, "/sh") || strings.Contains(name, "/bin/bash") {
			t.Errorf("the image has a shell: %s", name)
		}
	}

	again, err := build([]string{first, second})
	if err != nil {
		t.Fatal(err)
	}
	one, _ := image.ConfigName()
	two, _ := again.ConfigName()
	if one != two {
		t.Errorf("the same programs give different images: %s and %s", one, two)
	}
}

// TestTooLargeImageIsRejected checks the flag -most.
func TestTooLargeImageIsRejected(t *testing.T) {
	out := filepath.Join(t.TempDir(), "image.tar")
	if err := run("example/first:v1", out, []string{program(t, "first", "CGO_ENABLED=0", "GOOS=linux")},
		0.1); err == nil || !strings.Contains(err.Error(), "at most") {
		t.Errorf("run returned %v, want an error with the size that the image may have", err)
	}
}

// TestDynamicallyLinkedProgramIsRejected checks that the image takes only static programs, since it has no libraries.
func TestDynamicallyLinkedProgramIsRejected(t *testing.T) {
	content, err := os.ReadFile("/bin/sh")
	if err != nil {
		t.Skipf("this machine has no /bin/sh: %v", err)
	}
	if err := static(content); !errors.Is(err, errDynamic) {
		t.Errorf("static(/bin/sh) = %v, want %v", err, errDynamic)
	}
	if err := static([]byte("#!/bin/sh\n")); err == nil {
		t.Error("static accepts a shell script, want an error")
	}
}

// contents returns the files of the image, by name.
func contents(t *testing.T, image v1.Image) map[string]*tar.Header {
	t.Helper()
	stream := mutate.Extract(image)
	defer stream.Close()
	out := map[string]*tar.Header{}
	for files := tar.NewReader(stream); ; {
		header, err := files.Next()
		if errors.Is(err, io.EOF) {
			return out
		}
		if err != nil {
			t.Fatal(err)
		}
		out[header.Name] = header
	}
}
