package main

import (
	"crypto/rand"
	"fmt"
	"net"
	"path/filepath"
	"strconv"
	"strings"

	"golang.org/x/crypto/ssh"

	"croft/aggregate"
	"croft/gateway"
	"croft/internal/config"
	"croft/slivers"
)

// listenGateway opens the SSH gateway's port, and its host key; nil if there
// is no gateway.
func listenGateway(conf *config.Config) (net.Listener, ssh.Signer, error) {
	if conf.Logins.Ways == config.Direct {
		return nil, nil, nil
	}
	key, err := gateway.OpenHostKey(filepath.Join(filepath.Dir(conf.Database), "gateway_key"), rand.Reader)
	if err != nil {
		return nil, nil, err
	}
	l, err := net.Listen("tcp", net.JoinHostPort(conf.Logins.Address, strconv.Itoa(conf.Logins.Gateway.Port)))
	if err != nil {
		return nil, nil, fmt.Errorf("the SSH gateway: %w (set logins.gateway.port in croft.yaml, or logins.ways: direct for none)", err)
	}
	return l, key, nil
}

// gatewayOf is what clients are told of the gateway.
func gatewayOf(conf *config.Config, key ssh.Signer) aggregate.Gateway {
	if key == nil {
		return aggregate.Gateway{}
	}
	return aggregate.Gateway{
		Login: slivers.Login{Host: conf.Logins.Hostname, Port: conf.Logins.Gateway.Port}, User: conf.Logins.Gateway.User,
		HostKey: strings.TrimSpace(string(ssh.MarshalAuthorizedKey(key.PublicKey()))),
		Only:    conf.Logins.Ways == config.Through,
	}
}
