"""Checks the built site: every link and anchor inside it leads somewhere, links to other sites have a form that can be
right, and pages load nothing from other servers.

    check.py SITE
"""
import os
import posixpath
import re
import sys
import urllib.parse
from html.parser import HTMLParser

# elements that make a browser load what they name
LOADING = {'script': 'src', 'img': 'src', 'link': 'href', 'iframe': 'src', 'source': 'src', 'audio': 'src', 'video': 'src',
           'embed': 'src', 'object': 'data'}
HOST = re.compile(r'[a-z0-9-]+(\.[a-z0-9-]+)*(:\d+)?\Z', re.IGNORECASE)
MESSAGES = 40     # a wrong line of the navigation is wrong on every page
# links that name a page and load nothing
NAMING = {'canonical', 'next', 'prev', 'alternate', 'license'}


class Page(HTMLParser):
    """The ids of a page, and (line, element, address, whether it is loaded) of its links."""

    def __init__(self, text):
        super().__init__()
        self.ids, self.links = set(), []
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        attrs = dict(attrs)
        for key in ('id', 'name'):
            if attrs.get(key) and (key == 'id' or tag == 'a'):
                self.ids.add(attrs[key])
        key = LOADING.get(tag, 'href' if tag in ('a', 'area') else None)
        if key and attrs.get(key) is not None:
            loaded = tag in LOADING and attrs.get('rel') not in NAMING
            self.links.append((self.getpos()[0], tag, attrs[key], loaded))


def read(site):
    """{path: Page} of all pages of a site, and the paths of all files."""
    pages, files = {}, set()
    for folder, _, names in os.walk(site):
        for name in names:
            path = posixpath.relpath(posixpath.join(folder, name), site)
            files.add(path)
            if name.endswith('.html'):
                with open(os.path.join(site, path), encoding='utf-8') as file:
                    pages[path] = Page(file.read())
    return pages, files


def problem(path, address, loaded, pages, files):
    """The reason why a link of the page `path` is wrong, or None."""
    try:
        parts = urllib.parse.urlsplit(address)
    except ValueError as error:
        return str(error)
    if parts.scheme in ('http', 'https') or parts.netloc:
        if loaded:
            return 'is loaded from another server'
        return None if HOST.match(parts.netloc) and ' ' not in address else 'is not an address'
    if parts.scheme:
        return None if parts.scheme in ('mailto', 'data', 'javascript') else 'has the unknown scheme ' + parts.scheme
    target = urllib.parse.unquote(parts.path)
    if path == '404.html' and target.startswith('/'):
        target = target[1:]
    elif target.startswith('/'):
        return 'is absolute: the site works in any folder'
    else:
        target = posixpath.normpath(posixpath.join(posixpath.dirname(path), target)) if target else path
    if target == '.':
        target = 'index.html'
    if target + '/index.html' in files:
        target += '/index.html'
    if target not in files:
        return 'leads to %s, which does not exist' % target
    fragment = urllib.parse.unquote(parts.fragment)
    if fragment and target in pages and fragment not in pages[target].ids:
        return 'leads to #%s, which %s lacks' % (fragment, target)
    return None


def check(site):
    """(number of links, [message]) of a site."""
    pages, files = read(site)
    found, count = [], 0
    for path, page in sorted(pages.items()):
        for line, tag, address, loaded in page.links:
            count += 1
            if why := problem(path, address, loaded, pages, files):
                found.append('%s:%d: <%s> %s %s' % (path, line, tag, address, why))
    for path in sorted(files):
        if path.endswith('.css'):
            with open(os.path.join(site, path), encoding='utf-8') as file:
                for address in re.findall(r'url\(["\']?(https?:[^)"\']+)', file.read()):
                    found.append('%s: %s is loaded from another server' % (path, address))
    return count, found


def main():
    count, found = check(sys.argv[1])
    for message in found[:MESSAGES]:
        print(message, file=sys.stderr)
    print('docs: %d links, %d wrong' % (count, len(found)))
    return 1 if found or not count else 0


if __name__ == '__main__':
    sys.exit(main())
