package registry

import (
	"archive/tar"
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path"
	"path/filepath"
	"runtime"
	"strings"
)

// File is a file of an image: a symbolic link if Link is set, a folder if the name ends in /, a regular file otherwise.
type File struct {
	Name    string
	Mode    int64
	Content []byte
	Link    string
}

// Image is a manifest and the blobs that it refers to, by digest.
type Image struct {
	manifest  []byte
	mediaType string
	blobs     map[string][]byte
}

// config is the part of an image's configuration that a runtime reads.
type config struct {
	Architecture string `json:"architecture"`
	OS           string `json:"os"`
	Config       struct {
		Env        []string `json:",omitempty"`
		Entrypoint []string `json:",omitempty"`
	} `json:"config"`
	RootFS struct {
		Type    string   `json:"type"`
		DiffIDs []string `json:"diff_ids"`
	} `json:"rootfs"`
}

type descriptor struct {
	MediaType string `json:"mediaType"`
	Digest    string `json:"digest"`
	Size      int    `json:"size"`
}

type manifest struct {
	SchemaVersion int          `json:"schemaVersion"`
	MediaType     string       `json:"mediaType"`
	Config        descriptor   `json:"config"`
	Layers        []descriptor `json:"layers"`
}

const (
	manifestType   = "application/vnd.oci.image.manifest.v1+json"
	configType     = "application/vnd.oci.image.config.v1+json"
	plainLayerType = "application/vnd.oci.image.layer.v1.tar"
	gzipLayerType  = plainLayerType + "+gzip"
)

// New returns an image with one layer of the files, which belong to root, and with a default command.
func New(files []File, entrypoint ...string) (*Image, error) {
	layer, err := pack(files)
	if err != nil {
		return nil, err
	}
	var c config
	c.Architecture, c.OS = runtime.GOARCH, "linux"
	c.Config.Env = []string{"PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"}
	c.Config.Entrypoint = entrypoint
	c.RootFS.Type, c.RootFS.DiffIDs = "layers", []string{digest(layer)}
	content, err := json.Marshal(c)
	if err != nil {
		return nil, fmt.Errorf("encoding an image's configuration: %w", err)
	}
	return assemble(content, [][]byte{layer}, plainLayerType)
}

// Load reads an image from an archive in the format of `docker save`.
func Load(archive string) (*Image, error) {
	file, err := os.Open(archive)
	if err != nil {
		return nil, fmt.Errorf("reading an image: %w", err)
	}
	defer file.Close()
	files := map[string][]byte{}
	for r := tar.NewReader(file); ; {
		header, err := r.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return nil, fmt.Errorf("reading the image %s: %w", archive, err)
		}
		if files[header.Name], err = io.ReadAll(r); err != nil {
			return nil, fmt.Errorf("reading the image %s: %w", archive, err)
		}
	}
	var images []struct {
		Config string
		Layers []string
	}
	if err := json.Unmarshal(files["manifest.json"], &images); err != nil || len(images) != 1 {
		return nil, fmt.Errorf("the archive %s has %d images, want 1 (%v)", archive, len(images), err)
	}
	var layers [][]byte
	for _, name := range images[0].Layers {
		layers = append(layers, files[name])
	}
	return assemble(files[images[0].Config], layers, gzipLayerType)
}

// assemble returns an image of an encoded configuration and layers.
func assemble(config []byte, layers [][]byte, layerType string) (*Image, error) {
	image := &Image{mediaType: manifestType, blobs: map[string][]byte{}}
	add := func(content []byte, mediaType string) descriptor {
		d := descriptor{MediaType: mediaType, Digest: digest(content), Size: len(content)}
		image.blobs[d.Digest] = content
		return d
	}
	m := manifest{SchemaVersion: 2, MediaType: manifestType, Config: add(config, configType)}
	for _, layer := range layers {
		m.Layers = append(m.Layers, add(layer, layerType))
	}
	var err error
	if image.manifest, err = json.Marshal(m); err != nil {
		return nil, fmt.Errorf("encoding an image's manifest: %w", err)
	}
	return image, nil
}

// pack returns a layer of the files. It adds missing parent folders; of several files of the same name it takes the
// first.
func pack(files []File) ([]byte, error) {
	var packed bytes.Buffer
	w := tar.NewWriter(&packed)
	seen := map[string]bool{"/": true, ".": true}
	var add func(File) error
	add = func(f File) error {
		name := path.Clean("/" + f.Name)
		if seen[name] {
			return nil
		}
		seen[name] = true
		if err := add(File{Name: path.Dir(name) + "/", Mode: 0o755}); err != nil {
			return err
		}
		header := &tar.Header{Name: strings.TrimPrefix(name, "/"), Mode: f.Mode, Size: int64(len(f.Content)),
			Typeflag: tar.TypeReg}
		switch {
		case f.Link != "":
			header.Typeflag, header.Linkname, header.Size = tar.TypeSymlink, f.Link, 0
		case strings.HasSuffix(f.Name, "/"):
			header.Typeflag, header.Size = tar.TypeDir, 0
		}
		if err := w.WriteHeader(header); err != nil {
			return fmt.Errorf("packing %s: %w", f.Name, err)
		}
		if header.Typeflag != tar.TypeReg {
			return nil
		}
		if _, err := w.Write(f.Content); err != nil {
			return fmt.Errorf("packing %s: %w", f.Name, err)
		}
		return nil
	}
	for _, f := range files {
		if err := add(f); err != nil {
			return nil, err
		}
	}
	if err := w.Close(); err != nil {
		return nil, fmt.Errorf("packing a layer: %w", err)
	}
	return packed.Bytes(), nil
}

func digest(content []byte) string {
	sum := sha256.Sum256(content)
	return "sha256:" + hex.EncodeToString(sum[:])
}

// localFile reads a file of this machine. A symbolic link is followed.
func localFile(name string) (File, error) {
	info, err := os.Stat(name)
	if err != nil {
		return File{}, fmt.Errorf("copying into an image: %w", err)
	}
	content, err := os.ReadFile(name)
	if err != nil {
		return File{}, fmt.Errorf("copying into an image: %w", err)
	}
	return File{Name: filepath.ToSlash(name), Mode: int64(info.Mode().Perm()), Content: content}, nil
}
