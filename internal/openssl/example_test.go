package openssl_test

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"io"
	"log"
	"math/big"
	"net"
	"net/http"
	"time"

	"croft/internal/openssl"
)

// A web server that any certificate gets to, and that then verifies it.
func Example() {
	serverCert, serverKey := selfSigned("am.example.org")
	aliceCert, aliceKey := selfSigned("alice")
	roots, err := openssl.ParsePEM(append(serverCert, aliceCert...))
	if err != nil {
		log.Fatal(err)
	}

	inner, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		log.Fatal(err)
	}
	listener, err := openssl.NewListener(inner, &openssl.ServerConfig{CertificatePEM: serverCert, KeyPEM: serverKey})
	if err != nil {
		log.Fatal(err)
	}
	server := &http.Server{
		ConnContext: openssl.ConnContext,
		Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			conn, _ := openssl.FromContext(r.Context())
			peer := conn.PeerCertificates()
			if _, err := peer[0].Verify(openssl.VerifyOptions{Roots: roots, Intermediates: peer[1:]}); err != nil {
				http.Error(w, err.Error(), http.StatusForbidden)
				return
			}
			fmt.Fprintf(w, "hello %s", peer[0].CommonName)
		}),
	}
	go server.Serve(listener)
	defer server.Close()

	config := &openssl.ClientConfig{CertificatePEM: aliceCert, KeyPEM: aliceKey, Roots: roots, ServerName: "am.example.org"}
	client := &http.Client{Transport: &http.Transport{DialTLSContext: config.DialTLSContext}}
	resp, err := client.Get("https://" + inner.Addr().String())
	if err != nil {
		log.Fatal(err)
	}
	defer resp.Body.Close()
	answer, _ := io.ReadAll(resp.Body)
	fmt.Println(resp.StatusCode, string(answer))
	// Output: 200 hello alice
}

func selfSigned(name string) (cert, key []byte) {
	k, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		log.Fatal(err)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: name}, DNSNames: []string{name},
		NotBefore: time.Now().Add(-time.Minute), NotAfter: time.Now().Add(time.Hour)}
	der, err := x509.CreateCertificate(rand.Reader, template, template, k.Public(), k)
	if err != nil {
		log.Fatal(err)
	}
	keyDER, err := x509.MarshalPKCS8PrivateKey(k)
	if err != nil {
		log.Fatal(err)
	}
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}),
		pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: keyDER})
}
